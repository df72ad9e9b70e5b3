import { Router } from 'express'
import { z } from 'zod'
import { mergeSessionConfig } from '../config/index.ts'
import { isId, type Task, present } from '../core/index.ts'
import { bareTask, groupSpec } from '../rollout/index.ts'
import { givenBy } from '../access/index.ts'
import { onCuts } from '../trajectory/index.ts'
import type { ControlParts } from './contract.ts'
import { injections } from './injections.ts'
import { parse } from './parse.ts'
import { sessionPolicy } from './policy.ts'
import { rolloutEnd } from './rollout-end.ts'
import { rolloutView, sessionView } from '../read/index.ts'
import { verdictBody } from './verdict-body.ts'

const id = z.string().refine(isId, 'not an id')
const labels = z.record(z.string(), z.string()).default({})
const onCut = z.enum(onCuts).optional()

const specShape = {
  n: z.int().min(1),
  minUsable: z.int().min(0).optional(),
  stopWhen: z
    .discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('usable'), count: z.int().min(1) }),
      z.strictObject({ kind: z.literal('deadline') }),
    ])
    .optional(),
  carry: z.boolean().optional(),
  topUp: z.int().min(0).optional(),
  deadlineMs: z.int().min(1).nullable().optional(),
  labels: labels.optional(),
  horizon: z.int().min(1).nullable().optional(),
  inject: injections.optional(),
  onCut: z
    .strictObject({ horizon: onCut, budget: onCut, context_overflow: onCut, agent_timeout: onCut })
    .transform(present)
    .optional(),
}

const groupBody = z.strictObject({
  /** The caller's own. */
  id: id.nullable().default(null),
  run: id.nullable().default(null),
  name: z.string().min(1).default('outside'),
  task: z.union([
    z.strictObject({ name: z.string().min(1), instruction: z.string() }),
    z.strictObject({ digest: z.string() }),
  ]),
  promptVariant: z.string().default('default'),
  ...specShape,
})

const roundBody = z.strictObject(specShape)

const rolloutBody = z.strictObject({
  group: id,
  key: z.string().min(1).max(200).nullable().default(null),
  slot: z.int().min(0).nullable().default(null),
  harness: z.string().min(1).default('external'),
  labels,
  /** Keys of `session` in the configuration, and `model`. */
  policy: z.looseObject({ model: z.string().nullable().default(null) }).prefault({}),
})

const endBody = z.strictObject({
  end: rolloutEnd,
  detail: z.string().default(''),
  verdict: verdictBody.nullable().default(null),
})

const eventQuery = z.object({
  after: z.coerce.number().int().min(0).default(0),
  limit: z.coerce.number().int().min(1).max(10_000).default(1000),
})

/** Groups of somebody outside: opened, filled and ended over the control API. */
export function groupRoutes({ reader, outside, sessionDefaults, defaultModel, inferenceOrigin }: ControlParts): Router {
  const routes = Router()
  const taskOf = async (asked: z.infer<typeof groupBody>['task']): Promise<Task> =>
    'digest' in asked ? reader.catalogue.task(asked.digest) : bareTask(asked)

  routes.post('/groups', async (request, response) => {
    const { id: own, run, name, task, promptVariant, ...spec } = parse(groupBody, request.body ?? {}, 'body')
    const asked = { id: own, runId: run, name, promptVariant, task: await taskOf(task), spec: groupSpec(present(spec)) }
    response.status(201).json(await outside.openGroup(asked))
  })
  routes.get('/runs/:id/events', async (request, response) => {
    const { after, limit } = parse(eventQuery, request.query, 'query')
    const run = await reader.catalogue.run(request.params.id)
    response.json({ events: await reader.catalogue.runEvents(run.id, { after, limit }) })
  })
  routes.post('/groups/:id/rounds', async (request, response) => {
    const spec = groupSpec(present(parse(roundBody, request.body ?? {}, 'body')))
    response.status(201).json({ round: await outside.openRound(request.params.id, spec) })
  })
  routes.delete('/groups/:id', async (request, response) => {
    response.json({ settled: await outside.cancel(request.params.id) })
  })
  routes.post('/rollouts', async (request, response) => {
    const { group, policy: given, ...rest } = parse(rolloutBody, request.body ?? {}, 'body')
    const { model, ...asked } = given
    const policy = sessionPolicy(await mergeSessionConfig(sessionDefaults, asked, 'policy'), model ?? defaultModel())
    const { rollout, session } = await outside.openRollout({ groupId: group, policy, ...rest })
    response.status(201).json({
      rollout: rolloutView(rollout),
      session: session === null ? null : sessionView(session.session),
      key: session?.key ?? null,
      baseUrl: session?.baseUrl(inferenceOrigin) ?? null,
    })
  })
  routes.post('/rollouts/:id/end', async (request, response) => {
    const asked = parse(endBody, request.body ?? {}, 'body')
    const { rollout, settled } = await outside.end(request.params.id, {
      ...asked,
      verdict: givenBy(request, asked.verdict),
    })
    response.json({ rollout: rolloutView(rollout), settled })
  })
  return routes
}
