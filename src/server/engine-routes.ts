import { Router } from 'express'
import { z } from 'zod'
import { requireOwnEngine } from '../rollout/index.ts'
import { adapterBody, requireAdapterAlone } from './adapter-body.ts'
import type { ControlParts } from './contract.ts'
import { parse } from './parse.ts'

/** A weight update of a large model over a slow disk is done in this time; harnesses are kept meanwhile. */
const defaultTimeoutMs = 10 * 60_000

const pauseBody = z.strictObject({
  mode: z.enum(['drain', 'keep', 'abort-resubmit']).default('drain'),
  cache: z.enum(['clear', 'keep']).default('clear'),
  timeoutMs: z.int().min(1).max(86_400_000).default(defaultTimeoutMs),
})

const weightsBody = pauseBody.extend({
  mode: pauseBody.shape.mode.removeDefault().optional(),
  cache: pauseBody.shape.cache.removeDefault().optional(),
  version: z.string().min(1).max(200),
  requests: z
    .array(z.strictObject({ path: z.string().regex(/^\/[!-~]*$/, 'must be a path'), body: z.unknown() }))
    .default([]),
  adapter: adapterBody.nullable().default(null),
})

/** What a trainer says to the engine through Paddock, so that every token knows its weights. */
export function engineRoutes({ proxy, engine }: Pick<ControlParts, 'proxy' | 'engine'>): Router {
  const routes = Router()
  routes.get('/engine', (_request, response) => {
    response.json(proxy.engineStatus())
  })
  routes.post('/engine/pause', async (request, response) => {
    response.json(await engine.pauseEngine(parse(pauseBody, request.body ?? {}, 'body')))
  })
  routes.post('/engine/resume', async (_request, response) => {
    await engine.resumeEngine()
    response.json(proxy.engineStatus())
  })
  routes.post('/engine/weights', async (request, response) => {
    const { adapter, ...order } = parse(weightsBody, request.body ?? {}, 'body')
    if (adapter !== null) requireAdapterAlone(order)
    else requireOwnEngine(proxy, proxy.policies[0]?.name ?? null)
    const { mode = 'drain', cache = 'clear' } = order
    const requests = order.requests.map(({ path, body }) => ({ path, body: body ?? {} }))
    response.json(
      await engine.updateWeights({ ...order, mode, cache, requests, ...(adapter === null ? {} : { adapter }) }),
    )
  })
  return routes
}
