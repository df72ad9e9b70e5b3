import { Router } from 'express'
import { z } from 'zod'
import type { StoreReader } from '../../trajectory/index.ts'
import { parse } from '../parse.ts'
import { recordedName } from '../recorded-name.ts'
import { blobRoute } from './blob.ts'
import { pageOf, rolloutQuery } from './filter.ts'
import { ViewPages } from './pages.ts'
import { idOf, oneId } from './paths.ts'
import { searchStep } from './search.ts'
import { callDetail, sessionDetail, tokensOf } from './session-pages.ts'
import { picturesOf, terminalPart, timelinePart } from './story-pages.ts'
import { taskLines } from './task-pages.ts'

const names = z.object({ id: recordedName })
/** Runs and groups have the names that a trainer gave them. */
const nameOf = (parameters: unknown): string => parse(names, parameters, 'path').id
const count = z.coerce.number().int().min(0)
const part = z.strictObject({ after: count.default(0), limit: count.min(1).max(500).default(200) })
const callPath = z.object({ id: oneId, seq: count })

const taskPath = z.object({ digest: z.string().regex(/^[0-9a-f]{64}$/, 'not a digest') })

const rolloutPair = z.strictObject({ a: oneId, b: oneId })
const runPair = part.extend({ a: recordedName, b: recordedName })

/** Tokens that one reply holds at most: 9 bytes each, and their texts. */
const mostTokens = 4096

/** What the viewer's pages read. No route writes. */
export function viewRoutes(reader: StoreReader): Router {
  const pages = new ViewPages(reader)
  const routes = Router()
  routes.get('/runs', async (request, response) => {
    const { limit } = parse(z.object({ limit: count.max(1000).default(200) }), request.query, 'query')
    response.json({ runs: await pages.runs(limit) })
  })
  routes.get('/runs/:id', async (request, response) => {
    response.json(await pages.run(nameOf(request.params)))
  })
  routes.get('/runs/:id/rollouts', async (request, response) => {
    const query = parse(rolloutQuery, request.query, 'query')
    response.json(pageOf(await pages.read(nameOf(request.params)), query))
  })
  routes.get('/runs/:id/pulse', async (request, response) => {
    response.json(await pages.runPulse(nameOf(request.params)))
  })
  routes.get('/rollouts/:id/pulse', async (request, response) => {
    response.json(await pages.rolloutPulse(idOf(request.params)))
  })
  routes.get('/runs/:id/groups', async (request, response) => {
    const { after, limit } = parse(part, request.query, 'query')
    response.json(await pages.groups(nameOf(request.params), after, limit))
  })
  routes.get('/runs/:id/curves', async (request, response) => {
    response.json(await pages.curves(nameOf(request.params)))
  })
  routes.get('/runs/:id/tasks', async (request, response) => {
    const query = parse(part, request.query, 'query')
    const lines = taskLines((await pages.read(nameOf(request.params))).rollouts)
    const harnesses = [...new Set(lines.flatMap((line) => Object.keys(line.harnesses)))].toSorted().slice(0, 8)
    response.json({ ...partOf(lines, query), harnesses })
  })
  routes.get('/search', async (request, response) => {
    response.json(await searchStep(reader, request.query))
  })
  routes.get('/tasks/:digest', async (request, response) => {
    const { digest } = parse(taskPath, request.params, 'path')
    response.json(await pages.task(digest))
  })
  routes.get('/compare/rollouts', async (request, response) => {
    response.json(await pages.comparedRollouts(parse(rolloutPair, request.query, 'query')))
  })
  routes.get('/compare/runs', async (request, response) => {
    const { a, b, ...query } = parse(runPair, request.query, 'query')
    response.json(await pages.comparedRuns({ a, b }, query))
  })
  routes.get('/groups/:id', async (request, response) => {
    response.json(await pages.group(nameOf(request.params)))
  })
  routes.get('/rollouts/:id', async (request, response) => {
    response.json(await pages.rollout(idOf(request.params)))
  })
  routes.get('/rollouts/:id/tree', async (request, response) => {
    const query = parse(part, request.query, 'query')
    response.json(partOf(await pages.tree(idOf(request.params)), query))
  })
  routes.get('/rollouts/:id/family', async (request, response) => {
    response.json(await pages.family(idOf(request.params)))
  })
  routes.get('/rollouts/:id/timeline', async (request, response) => {
    const query = parse(part, request.query, 'query')
    const { events, calls } = await pages.story(idOf(request.params))
    response.json(timelinePart(events, calls, query))
  })
  routes.get('/rollouts/:id/terminal', async (request, response) => {
    const query = parse(part, request.query, 'query')
    const { events, calls } = await pages.story(idOf(request.params))
    response.json(terminalPart(events, calls, query))
  })
  routes.get('/rollouts/:id/pictures', async (request, response) => {
    const query = parse(part, request.query, 'query')
    const { events, calls } = await pages.story(idOf(request.params))
    response.json(partOf(picturesOf(events, calls), query))
  })
  routes.get('/rollouts/:id/training', async (request, response) => {
    response.json(await pages.training(idOf(request.params)))
  })
  routes.get('/blobs/:sha256', blobRoute(reader))
  routes.get('/sessions/:id', async (request, response) => {
    response.json(sessionDetail(await pages.session(idOf(request.params))))
  })
  routes.get('/sessions/:id/calls/:seq', async (request, response) => {
    const { id, seq } = parse(callPath, request.params, 'path')
    response.json(await callDetail(reader, await pages.session(id), seq))
  })
  routes.get('/sessions/:id/calls/:seq/tokens', async (request, response) => {
    const { id, seq } = parse(callPath, request.params, 'path')
    const range = z.object({ choice: count.default(0), from: count.default(0), to: count.optional() })
    const { choice, from, to } = parse(range, request.query, 'query')
    const end = Math.min(to ?? from + mostTokens, from + mostTokens)
    const body = tokensOf(await pages.session(id), seq, choice, from, end)
    response.type('application/vnd.paddock.tokens').send(body)
  })
  return routes
}

/** A part of a list whose lines are small. */
function partOf<T>(lines: readonly T[], { after, limit }: z.infer<typeof part>) {
  const rows = lines.slice(after, after + limit)
  return { total: lines.length, rows, next: after + rows.length < lines.length ? after + rows.length : null }
}
