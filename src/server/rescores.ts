import { Router } from 'express'
import { z } from 'zod'
import { isId } from '../core/index.ts'
import type { ControlParts } from './contract.ts'
import { failureOf } from './failure.ts'
import { parse } from './parse.ts'
import { whileThere } from './while-there.ts'

const rescoreBody = z.strictObject({
  rollouts: z.array(z.string().refine(isId, 'not an id')).min(1).max(20_000),
  dryRun: z.boolean().default(false),
  parallel: z.int().min(1).max(10_000).default(64),
})

/** An empty line this often keeps a client from taking a long verification for a dead server. */
const aliveMs = 15_000

/** Verifies recorded rollouts again, by jobs that this process and nodes take: a line for each as it is done. */
export function rescoreRoutes({ rescore }: Pick<ControlParts, 'rescore'>): Router {
  const routes = Router()
  routes.post('/rescores', async (request, response) => {
    const { rollouts, ...asked } = parse(rescoreBody, request.body ?? {}, 'body')
    const signal = whileThere(response)
    const begun = await rescore(rollouts)
    response.type('application/x-ndjson').flushHeaders()
    const alive = setInterval(() => response.write('\n'), aliveMs)
    const tell = (line: object): void => void response.write(`${JSON.stringify(line)}\n`)
    try {
      await begun({ ...asked, signal, onResult: (rescored) => tell({ rescored }) })
      tell({ done: true })
    } catch (error) {
      tell(failureOf(error))
    } finally {
      clearInterval(alive)
      response.end()
    }
  })
  return routes
}
