import express, { type RequestHandler, Router } from 'express'
import { PaddockError, type Id, type Verdict } from '../../core/index.ts'
import type { LateVerdict } from '../../rollout/index.ts'
import { labelBody } from '../label-body.ts'
import { parse } from '../parse.ts'
import { verdictBody } from '../verdict-body.ts'
import type { ViewAccess, Viewer } from './access.ts'
import type { AnnotateState } from './contract.ts'
import { idOf } from './paths.ts'

/** Writes what people say in the viewer. */
export interface Annotator {
  /** Throws as `appendLate` does, and what an owner answers. */
  verdict(rolloutId: Id, given: LateVerdict, viewer: Viewer): Promise<Verdict>
  /** Throws as `giveLabel` does, and what an owner answers. */
  label(rolloutId: Id, given: { readonly name: string; readonly value: string }, viewer: Viewer): Promise<void>
}

/** Of every request that writes. A page of another origin cannot send it without asking first, and is not answered. */
export const annotateHeader = 'x-paddock-annotate'

/** What this browser may write, and under which name; without an annotator nothing, and there are no routes that write. */
export function annotateRoutes(annotator: Annotator | null, access: ViewAccess): Router {
  const routes = Router()
  routes.get('/annotate', (request, response) => {
    const viewer = access.viewer(request)
    const state: AnnotateState = {
      on: annotator !== null,
      may: annotator !== null && viewer.annotates,
      name: viewer.name,
    }
    response.json(state)
  })
  if (annotator === null) return routes
  const body = express.json({ limit: '1mb', strict: true })
  const guards = [sentByThePage, access.mayAnnotate, body]
  routes.post('/rollouts/:id/verdicts', ...guards, async (request, response) => {
    const given = parse(verdictBody, request.body ?? {}, 'body')
    const verdict = await annotator.verdict(idOf(request.params), given, access.viewer(request))
    response.status(201).json({ verdict })
  })
  routes.post('/rollouts/:id/labels', ...guards, async (request, response) => {
    await annotator.label(idOf(request.params), parse(labelBody, request.body ?? {}, 'body'), access.viewer(request))
    response.status(201).json({})
  })
  return routes
}

/**
 * A write comes from a script of the viewer's own page and says so twice: browsers set `Sec-Fetch-Site` themselves
 * (w3.org/TR/fetch-metadata), and no form can set a header of ours. Throws `ORIGIN_REFUSED`.
 */
const sentByThePage: RequestHandler = ({ headers }, _response, next) => {
  if (headers['sec-fetch-site'] === 'same-origin' && headers[annotateHeader] === '1') return next()
  throw new PaddockError('ORIGIN_REFUSED', 'This address takes writes from its own page only.')
}
