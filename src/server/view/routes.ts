import { type Request, type RequestHandler, Router } from 'express'
import { z } from 'zod'
import type { StoreReader } from '../../trajectory/index.ts'
import { parse } from '../parse.ts'
import { recordedName } from '../recorded-name.ts'
import { blobRoute } from './blob.ts'
import { pageOf, rolloutQuery } from './filter.ts'
import { fitted, partOf } from './fit.ts'
import { ViewPages } from './pages.ts'
import { idOf, oneId } from './paths.ts'
import { searchStep } from './search.ts'
import { callDetail, callsPartOf, sessionDetail, tokensOf } from './session-pages.ts'
import { picturesOf, terminalPart, timelinePart } from './story-pages.ts'
import { taskLines } from './task-pages.ts'

const names = z.object({ id: recordedName })
/** Runs and groups have the names that a trainer gave them. */
const nameOf = (parameters: unknown): string => parse(names, parameters, 'path').id
const count = z.coerce.number().int().min(0)
const part = z.strictObject({ after: count.default(0), limit: count.min(1).max(500).default(200) })
/** `at`: the number of a call whose place in the list is wanted. */
const callsPart = part.extend({ at: count.optional() })
const callPath = z.object({ id: oneId, seq: count })

const taskPath = z.object({ digest: z.string().regex(/^[0-9a-f]{64}$/, 'not a digest') })

const rolloutPair = z.strictObject({ a: oneId, b: oneId })
const runPair = part.extend({ a: recordedName, b: recordedName })

/** Tokens that one reply holds at most: 9 bytes each, and their texts. */
const mostTokens = 4096

/** Answers with what was read, as far as it fits into a reply. */
function page(read: (request: Request) => object | Promise<object>): RequestHandler {
  return async (request, response) => {
    response.type('json').send(fitted(await read(request)))
  }
}

/** What the viewer's pages read. No route writes. */
export function viewRoutes(reader: StoreReader): Router {
  const pages = new ViewPages(reader)
  const routes = Router()
  const get = (path: string, read: (request: Request) => object | Promise<object>): void => {
    routes.get(path, page(read))
  }
  get('/runs', async ({ query }) => {
    const { limit } = parse(z.object({ limit: count.max(1000).default(200) }), query, 'query')
    return { runs: await pages.runs(limit) }
  })
  get('/runs/:id', ({ params }) => pages.run(nameOf(params)))
  get('/runs/:id/rollouts', async ({ params, query }) =>
    pageOf(await pages.read(nameOf(params)), parse(rolloutQuery, query, 'query')),
  )
  get('/runs/:id/pulse', ({ params }) => pages.runPulse(nameOf(params)))
  get('/rollouts/:id/pulse', ({ params }) => pages.rolloutPulse(idOf(params)))
  get('/runs/:id/groups', async ({ params, query }) =>
    partOf(await pages.groups(nameOf(params)), parse(part, query, 'query')),
  )
  get('/runs/:id/curves', ({ params }) => pages.curves(nameOf(params)))
  get('/runs/:id/nulls', async ({ params, query }) => {
    const { lines, ...rest } = await pages.nulls(nameOf(params))
    return { ...rest, ...partOf(lines, parse(part, query, 'query')) }
  })
  get('/runs/:id/tasks', async ({ params, query }) => {
    const asked = parse(part, query, 'query')
    const lines = taskLines((await pages.read(nameOf(params))).rollouts)
    const harnesses = [...new Set(lines.flatMap((line) => Object.keys(line.harnesses)))].toSorted().slice(0, 8)
    return { ...partOf(lines, asked), harnesses }
  })
  get('/search', ({ query }) => searchStep(reader, query))
  get('/tasks/:digest', ({ params }) => pages.task(parse(taskPath, params, 'path').digest))
  get('/compare/rollouts', ({ query }) => pages.comparedRollouts(parse(rolloutPair, query, 'query')))
  get('/compare/runs', ({ query }) => {
    const { a, b, ...asked } = parse(runPair, query, 'query')
    return pages.comparedRuns({ a, b }, asked)
  })
  get('/groups/:id', async ({ params, query }) => {
    const { group, names, members } = await pages.group(nameOf(params))
    return { group, names, ...partOf(members, parse(part, query, 'query')) }
  })
  get('/rollouts/:id', ({ params }) => pages.rollout(idOf(params)))
  get('/rollouts/:id/tree', async ({ params, query }) =>
    partOf(await pages.tree(idOf(params)), parse(part, query, 'query')),
  )
  get('/rollouts/:id/family', ({ params }) => pages.family(idOf(params)))
  get('/rollouts/:id/timeline', async ({ params, query }) => {
    const asked = parse(part, query, 'query')
    const { events, calls } = await pages.story(idOf(params))
    return timelinePart(events, calls, asked)
  })
  get('/rollouts/:id/terminal', async ({ params, query }) => {
    const asked = parse(part, query, 'query')
    const { events, calls } = await pages.story(idOf(params))
    return terminalPart(events, calls, asked)
  })
  get('/rollouts/:id/pictures', async ({ params, query }) => {
    const asked = parse(part, query, 'query')
    const { events, calls } = await pages.story(idOf(params))
    return partOf(picturesOf(events, calls), asked)
  })
  get('/rollouts/:id/training', ({ params }) => pages.training(idOf(params)))
  routes.get('/blobs/:sha256', blobRoute(reader))
  get('/sessions/:id', async ({ params }) => sessionDetail(await pages.session(idOf(params))))
  get('/sessions/:id/calls', async ({ params, query }) => {
    const { at, ...asked } = parse(callsPart, query, 'query')
    return callsPartOf(await pages.session(idOf(params)), asked, at ?? null)
  })
  get('/sessions/:id/calls/:seq', async ({ params }) => {
    const { id, seq } = parse(callPath, params, 'path')
    return callDetail(reader, await pages.session(id), seq)
  })
  routes.get('/sessions/:id/calls/:seq/tokens', async ({ params, query }, response) => {
    const { id, seq } = parse(callPath, params, 'path')
    const range = z.object({ choice: count.default(0), from: count.default(0), to: count.optional() })
    const { choice, from, to } = parse(range, query, 'query')
    const end = Math.min(to ?? from + mostTokens, from + mostTokens)
    const body = tokensOf(await pages.session(id), seq, choice, from, end)
    response.type('application/vnd.paddock.tokens').send(body)
  })
  return routes
}
