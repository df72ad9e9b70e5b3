import { Router } from 'express'
import { z } from 'zod'
import { mergeSessionConfig } from '../config/index.ts'
import { type Id, isId, PaddockError } from '../core/index.ts'
import { givenBy } from '../access/index.ts'
import type { ControlParts } from './contract.ts'
import { engineRoutes } from './engine-routes.ts'
import { groupRoutes } from './group-routes.ts'
import { giveLabel } from '../rollout/index.ts'
import { labelBody } from './label-body.ts'
import { parse } from './parse.ts'
import { sessionPolicy } from './policy.ts'
import { rescoreRoutes } from './rescores.ts'
import { resumeRequest, runRequest } from './run-request.ts'
import { verdictBody } from './verdict-body.ts'
import { rolloutView, sessionLogView, sessionView } from '../read/index.ts'
import {
  type CatalogueReader,
  countedAttempt,
  type GroupRecord,
  MemberWeights,
  type NullShare,
  nullShareOf,
  type SessionRecord,
} from '../trajectory/index.ts'

const limit = z.coerce.number().int().min(1).max(10_000).default(100)
const id = z.string().refine(isId, 'not an id')

const sessionBody = z.strictObject({
  rolloutId: id.nullable().default(null),
  role: z.enum(['agent', 'judge', 'user_simulator', 'teacher', 'probe']).default('agent'),
  /** Keys of `session` in the configuration, and `model`. */
  policy: z.looseObject({ model: z.string().nullable().default(null) }).prefault({}),
  labels: z.record(z.string(), z.string()).default({}),
})

/** The control routes; `docs/reference/routes.md` is held against them by a test. */
export function controlRoutes(parts: ControlParts): Router {
  const { recorder, catalogue } = parts.reader
  const routes = Router()
  routes.use(engineRoutes(parts))
  routes.use(groupRoutes(parts))
  routes.use(rescoreRoutes(parts))

  /** What an agent sampled after its rollout's end would change rows that are settled, and maybe trained. */
  const rolloutToJoin = async (rolloutId: Id, role: SessionRecord['role']): Promise<Id> => {
    const { end, work } = await catalogue.rollout(rolloutId)
    if (role !== 'agent' || (end === null && work === null)) return rolloutId
    throw new PaddockError('STORE_CONFLICT', `rollout ${rolloutId} has ended${end === null ? '' : ` as ${end}`}`, {
      fix: 'Open a session without a rollout, or a rollout of a group.',
    })
  }

  routes.post('/sessions', async (request, response) => {
    const body = parse(sessionBody, request.body ?? {}, 'body')
    const { model, ...asked } = body.policy
    const policy = sessionPolicy(
      await mergeSessionConfig(parts.sessionDefaults, asked, 'policy'),
      model ?? parts.defaultModel(),
    )
    const open = { role: body.role, labels: body.labels, policy }
    // A session of nobody's rollout gets one of its own: what belongs to none can be neither shown nor exported.
    const opened =
      body.rolloutId === null
        ? await parts.openRecording(open)
        : await parts.proxy.openSession({ ...open, rolloutId: await rolloutToJoin(body.rolloutId, body.role) })
    response.status(201).json({
      session: sessionView(opened.session),
      key: opened.key,
      baseUrl: opened.baseUrl(parts.inferenceOrigin),
    })
  })
  routes.get('/sessions', async (request, response) => {
    const query = parse(z.object({ rollout: id.optional(), limit }), request.query, 'query')
    const sessions = await recorder.sessions({
      limit: query.limit,
      ...(query.rollout === undefined ? {} : { rolloutId: query.rollout }),
    })
    response.json({ sessions: sessions.map(sessionView) })
  })
  routes.get('/sessions/:id', async (request, response) => {
    response.json(sessionLogView(await recorder.session(request.params.id)))
  })
  routes.delete('/sessions/:id', async (request, response) => {
    await parts.closeSession(request.params.id)
    response.status(204).end()
  })

  routes.get('/runs', async (request, response) => {
    const query = parse(z.object({ limit }), request.query, 'query')
    response.json({ runs: await catalogue.runs(query.limit) })
  })
  routes.post('/runs', async (request, response) => {
    response.status(202).json(await parts.submitRun(parse(runRequest, request.body ?? {}, 'body')))
  })
  routes.post('/runs/:id/resume', async (request, response) => {
    const asked = parse(resumeRequest, request.body ?? {}, 'body')
    response.status(202).json(await parts.resumeRun({ ...asked, resume: request.params.id }))
  })
  routes.delete('/runs/:id', (request, response) => {
    parts.cancelRun(request.params.id)
    response.status(204).end()
  })
  routes.get('/runs/:id', async (request, response) => {
    const run = await catalogue.run(request.params.id)
    const groups = await catalogue.groups(run.id)
    response.json({ run, groups, nulls: await nullsOf(catalogue, run.id, groups) })
  })
  routes.get('/groups', async (request, response) => {
    const query = parse(z.object({ run: id }), request.query, 'query')
    response.json({ groups: await catalogue.groups(query.run) })
  })
  routes.get('/groups/:id', async (request, response) => {
    const group = await catalogue.group(request.params.id)
    const rollouts = await catalogue.rollouts({ groupId: group.id })
    const rounds = await catalogue.rounds(group.id)
    response.json({ group, rounds, rollouts: rollouts.map(rolloutView) })
  })
  routes.get('/rollouts', async (request, response) => {
    const query = parse(z.object({ run: id.optional(), group: id.optional(), limit }), request.query, 'query')
    const rollouts = await catalogue.rollouts({
      limit: query.limit,
      ...(query.run === undefined ? {} : { runId: query.run }),
      ...(query.group === undefined ? {} : { groupId: query.group }),
    })
    response.json({ rollouts: rollouts.map(rolloutView) })
  })
  routes.get('/rollouts/:id', async (request, response) => {
    const rollout = await catalogue.rollout(request.params.id)
    const sessions = await recorder.sessions({ rolloutId: rollout.id })
    response.json({ rollout: rolloutView(rollout), sessions: sessions.map(sessionView) })
  })
  routes.post('/rollouts/:id/verdicts', async (request, response) => {
    const given = parse(verdictBody, request.body ?? {}, 'body')
    response.status(201).json({ verdict: await parts.appendLate(request.params.id, givenBy(request, given)) })
  })
  routes.post('/rollouts/:id/labels', async (request, response) => {
    const given = givenBy(request, parse(labelBody, request.body ?? {}, 'body'))
    await giveLabel(parts.reader, request.params.id, given)
    response.status(201).json({ rollout: rolloutView(await catalogue.rollout(request.params.id)) })
  })
  routes.get('/rollouts/:id/events', async (request, response) => {
    const rollout = await catalogue.rollout(request.params.id)
    response.json({ events: await recorder.events({ rolloutId: rollout.id }) })
  })
  return routes
}

async function nullsOf(
  catalogue: Pick<CatalogueReader, 'rollouts' | 'settledRounds' | 'task'>,
  runId: Id,
  groups: readonly GroupRecord[],
): Promise<NullShare> {
  const names = new Map<string, string>()
  for (const { taskDigest } of groups) {
    if (!names.has(taskDigest)) names.set(taskDigest, (await catalogue.task(taskDigest)).name)
  }
  const weights = await new MemberWeights(catalogue, runId).read()
  const rollouts = await catalogue.rollouts({ runId })
  return nullShareOf(
    rollouts.map((one) => countedAttempt(one, names.get(one.taskDigest) ?? one.taskDigest, weights.get(one.id))),
  )
}
