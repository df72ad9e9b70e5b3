import express, { type RequestHandler, Router } from 'express'
import { RlApi } from './api.ts'
import { claimRoutes } from './claims.ts'
import type { RlParts } from './contract.ts'
import { engineRoutes } from './engines.ts'
import { evalRoutes } from './evals.ts'
import { eventRoutes } from './events.ts'
import { groupRoutes } from './groups.ts'
import { describeRoutes } from './openapi.ts'
import { probeRoutes } from './probes.ts'
import { policyRoutes } from './policy.ts'
import { rewriteRoutes } from './rewrites.ts'
import { rolloutRoutes } from './rollouts.ts'
import { runRoutes } from './runs.ts'
import { saidRoutes } from './said.ts'
import { scoreRoutes } from './score.ts'
import { shelveRoutes } from './shelve.ts'
import { taskRoutes } from './tasks.ts'
import { verifyRoutes } from './verify.ts'

export type { RlParts } from './contract.ts'

/** Groups and dispositions come by the thousand. */
const maxBodyBytes = '64mb'

/** The trainer's side, below `/rl/v1`; `docs/reference/rl.md` tells it. `noted` stands behind the body's parser. */
export function rlRoutes(parts: RlParts, noted: RequestHandler = (_request, _response, next) => next()): Router {
  const routes = Router()
  routes.use(express.text({ limit: maxBodyBytes, type: 'application/x-ndjson' }))
  routes.use(express.json({ limit: maxBodyBytes, strict: true }))
  routes.use(noted)
  const api = new RlApi()
  for (const add of [
    runRoutes,
    groupRoutes,
    rolloutRoutes,
    claimRoutes,
    saidRoutes,
    policyRoutes,
    engineRoutes,
    evalRoutes,
    scoreRoutes,
    probeRoutes,
    rewriteRoutes,
    shelveRoutes,
    taskRoutes,
    verifyRoutes,
    eventRoutes,
    describeRoutes,
  ])
    add(api, parts)
  routes.use(api.router)
  return routes
}
