import { z } from 'zod'
import { mergeSessionConfig } from '../../config/index.ts'
import { PaddockError, systemClock } from '../../core/index.ts'
import { callNamed, trainerRunOf, untilChange } from '../../rollout/index.ts'
import type { OpenedSession } from '../../proxy/index.ts'
import { familyOf, type RolloutView, treeOf, verdictInForce } from '../../trajectory/index.ts'
import { givenBy } from '../../access/index.ts'
import { sessionPolicy } from '../policy.ts'
import { recordedName } from '../recorded-name.ts'
import { verdictBody } from '../verdict-body.ts'
import type { RlApi } from './api.ts'
import type { RlParts } from './contract.ts'
import { priority, round, roundView, specOf, specShape } from './groups.ts'
import { labels, name, number, rolloutEnd, waitS, whileThere } from './shapes.ts'

const openBody = z.strictObject({
  group_id: recordedName,
  idempotency_key: z.string().min(1).max(200).nullable().default(null),
  /** A slot whose last attempt came to nothing gets another one. */
  slot: z.int().min(0).nullable().default(null),
  harness: z.string().min(1).max(200).nullable().default(null),
  labels: labels.default({}),
})

const endBody = z.strictObject({
  end: rolloutEnd,
  detail: z.string().default(''),
  verdict: verdictBody.nullable().default(null),
})

const cancelBody = z.strictObject({ reason: z.string().min(1).max(1000).default('cancelled by its trainer') })

const forkBody = z.strictObject({
  group_id: recordedName,
  /** Its id, the end of it, or its number among the calls of the conversation, from 1. */
  call: z.union([z.string().min(1), z.int().min(1)]),
  way: z.enum(['replay', 'state', 'graft']).default('replay'),
  on_divergence: z.enum(['refuse', 'branch']).default('refuse'),
  priority,
  ...specShape,
})

const treeAnswer = z.strictObject({
  rollouts: z.array(z.strictObject({ rollout_id: name, parent: name.nullable(), reward: number })),
  nodes: z.array(
    z.strictObject({
      call: name,
      parent: name.nullable(),
      depth: z.int(),
      rollouts: z.array(name).readonly(),
      count: z.int(),
      value: number,
    }),
  ),
})

const rolloutAnswer = z.strictObject({
  rollout_id: name,
  run_id: name,
  group_id: name,
  slot: z.int(),
  attempt: z.int(),
  harness: z.string(),
  end: rolloutEnd.nullable(),
  end_detail: z.string(),
  reward: number,
  status: z.string().nullable(),
  labels,
})
const place = { session_id: name, key: z.string(), base_url: z.string() }
/** Where its harness asks; with several policies, as each of them. Null where the rollout has ended. */
const opened = rolloutAnswer.extend({
  session_id: name.nullable(),
  key: z.string().nullable(),
  base_url: z.string().nullable(),
  sessions: z.record(z.string(), z.strictObject({ ...place, model: z.string().nullable() })).optional(),
})
const judged = z.strictObject({ rollout_id: name, reward: number, status: z.string() })

/** Rollouts of a harness that runs elsewhere. */
export function rolloutRoutes(api: RlApi, parts: RlParts): void {
  const { outside, groups, reader, sessionDefaults, defaultModel, inferenceOrigin, changes } = parts
  const opening = { name: 'openRollout', says: 'Opens a rollout', body: openBody, status: 201, answer: opened }
  api.add('post', '/rollouts', opening, async ({ body }) => {
    const { group_id: groupId, idempotency_key: key, ...asked } = body
    const { runId } = await reader.catalogue.group(groupId)
    const { pin, model, harness } = trainerRunOf(await reader.catalogue.run(runId))
    const config = await mergeSessionConfig(sessionDefaults, { pin }, 'sampling')
    const policy = sessionPolicy(config, model ?? defaultModel())
    const { rollout, session, sessions } = await outside.openRollout({
      ...asked,
      groupId,
      key,
      harness: asked.harness ?? harness,
      policy,
    })
    const placeOf = (one: OpenedSession) => ({
      session_id: one.session.id,
      key: one.key,
      base_url: one.baseUrl(inferenceOrigin),
    })
    return {
      ...rolloutView(rollout),
      ...(session === null ? { session_id: null, key: null, base_url: null } : placeOf(session)),
      ...(sessions.size === 0
        ? {}
        : {
            sessions: Object.fromEntries(
              [...sessions].map(
                ([policy, one]) => [policy, { ...placeOf(one), model: one.session.policy.model }] as const,
              ),
            ),
          }),
    }
  })
  const waiting = z.object({ wait_s: waitS })
  const looking = { name: 'rollout', says: 'How a rollout stands', query: waiting, answer: rolloutAnswer }
  api.add('get', '/rollouts/:id', looking, async ({ response, params: { id: rolloutId }, query }) => {
    const ended = await untilChange(
      {
        changes,
        clock: systemClock,
        waitMs: query.wait_s * 1000,
        signal: whileThere(response),
        concerns: (change) => change.kind === 'rollout' && change.rolloutId === rolloutId,
      },
      async () => {
        const rollout = await reader.catalogue.rollout(rolloutId)
        return rollout.end === null ? null : rollout
      },
    )
    return rolloutView(ended ?? (await reader.catalogue.rollout(rolloutId)))
  })
  const forking = {
    name: 'forkRollout',
    says: 'Asks for a group that goes on from a rollout, at a call of its agent',
    body: forkBody,
    status: 202,
    answer: round,
  }
  api.add('post', '/rollouts/:id/forks', forking, async ({ params, body }) => {
    const { call, way, on_divergence: onDivergence, group_id: id, priority, ...spec } = body
    const parent = await reader.catalogue.rollout(params.id)
    const { promptVariant } = await reader.catalogue.group(parent.groupId)
    const callId = await callNamed(reader.recorder, parent.id, String(call))
    const fork = { rolloutId: parent.id, callId, way, onDivergence }
    const wanted = { id, task: parent.taskDigest, promptVariant, priority, spec: { ...specOf(spec), fork } }
    const { accepted } = await parts.runs.submit(parent.runId, [wanted])
    const [opened] = accepted
    if (opened === undefined) {
      throw new PaddockError('RUN_FULL', `run ${parent.runId} has no room for a fork of ${parent.id}`)
    }
    return roundView(opened.id, opened.round)
  })
  const growing = { name: 'tree', says: 'The family of a rollout: what its places are worth', answer: treeAnswer }
  api.add('get', '/rollouts/:id/tree', growing, async ({ params }) => {
    const family = await familyOf(reader, params.id)
    return {
      rollouts: family.map(({ rolloutId, parent, reward }) => ({ rollout_id: rolloutId, parent, reward })),
      nodes: [...treeOf(family)],
    }
  })
  const ending = { name: 'endRollout', says: 'Ends a rollout', body: endBody, answer: rolloutAnswer }
  api.add('post', '/rollouts/:id/end', ending, async ({ request, params, body }) => {
    const { rollout } = await outside.end(params.id, { ...body, verdict: givenBy(request, body.verdict) })
    return rolloutView(rollout)
  })
  const cancelling = { name: 'cancelRollout', says: 'Stops a rollout', body: cancelBody, answer: rolloutAnswer }
  api.add('post', '/rollouts/:id/cancel', cancelling, async ({ params, body: { reason } }) => {
    await groups.stopRollout(params.id, reason)
    return rolloutView(await reader.catalogue.rollout(params.id))
  })
  const judging = { name: 'verdict', says: 'A verdict of a rollout', body: verdictBody, status: 201, answer: judged }
  api.add('post', '/rollouts/:id/verdict', judging, async ({ request, params, body }) => {
    const { reward, status } = await parts.appendLate(params.id, givenBy(request, body))
    return { rollout_id: params.id, reward, status }
  })
}

function rolloutView({
  id,
  runId,
  groupId,
  slot,
  attempt,
  harness,
  end,
  endDetail,
  verdicts,
  labels: given,
}: RolloutView) {
  const verdict = verdictInForce(verdicts)
  return {
    rollout_id: id,
    run_id: runId,
    group_id: groupId,
    slot,
    attempt,
    harness,
    end,
    end_detail: endDetail,
    reward: verdict?.reward ?? null,
    status: verdict?.status ?? null,
    labels: given,
  }
}
