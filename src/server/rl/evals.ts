import { z } from 'zod'
import type { EvalMember, EvalState, EvalTask } from '../../rollout/index.ts'
import { recordedName } from '../recorded-name.ts'
import { nothing, type RlApi } from './api.ts'
import type { RlParts } from './contract.ts'
import { name, number, outs, pinOf, rolloutEnd, sampling, task, version, waitS, whileThere } from './shapes.ts'

const evalBody = z.strictObject({
  /** Its groups are named by it and the place of their task. */
  eval_id: recordedName.max(120).nullable().default(null),
  tasks: z.array(task).min(1).max(10_000).nullable().default(null),
  split: z.string().min(1).max(200).nullable().default(null),
  k: z.int().min(1).max(1000).default(1),
  sampling: sampling.prefault({}),
  version: z.int().min(0).nullable().default(null),
  versions: z.record(z.string(), z.int().min(0)).optional(),
  pass_reward: z.number().default(1),
  deadline_s: z.number().gt(0).nullable().default(null),
})

const member = z.strictObject({
  rollout_id: name,
  slot: z.int(),
  attempt: z.int(),
  end: rolloutEnd.nullable(),
  reward: number,
  out: outs.nullable(),
})

const evalAnswer = z.strictObject({
  eval_id: name,
  run_id: name,
  state: z.enum(['running', 'done', 'cancelled']),
  split: z.string().nullable(),
  k: z.int(),
  pass_reward: z.number(),
  version: version.nullable(),
  versions: z.record(z.string(), version.nullable()).optional(),
  result: z
    .strictObject({
      mean: number,
      interval: z.strictObject({ low: z.number(), high: z.number(), level: z.number() }).nullable(),
      pass: z.array(z.strictObject({ k: z.int(), pass_at: z.number(), pass_all: z.number(), tasks: z.int() })),
      tasks: z.int(),
      rollouts: z.int(),
      nulls: z.partialRecord(z.enum([...outs.options, 'never_began']), z.int()),
      mixed: z.boolean(),
      mean_by_policy: z.record(z.string(), number).optional(),
      overlap: z.array(z.string()),
    })
    .nullable(),
  tasks: z.array(
    z.strictObject({
      name: z.string(),
      digest: z.string(),
      split: z.string(),
      group_id: name,
      state: z.enum(['waiting', 'running', 'settled']),
      members: z.array(member),
    }),
  ),
})

/** Evaluations: rollouts that nothing is ever trained on. */
export function evalRoutes(api: RlApi, { evals }: RlParts): void {
  const opening = { name: 'openEval', says: 'Begins an evaluation', body: evalBody, status: 201, answer: evalAnswer }
  api.add('post', '/runs/:id/evals', opening, async ({ params, body }) => {
    const { eval_id: id, sampling: held, pass_reward: passReward, deadline_s: deadlineS, versions, ...rest } = body
    const deadlineMs = deadlineS === null ? null : Math.round(deadlineS * 1000)
    return evalView(
      await evals.open(params.id, id, {
        ...rest,
        ...(versions === undefined ? {} : { versions }),
        pin: pinOf(held),
        passReward,
        deadlineMs,
      }),
    )
  })
  const looking = {
    name: 'eval',
    says: 'How an evaluation stands',
    query: z.object({ wait_s: waitS }),
    answer: evalAnswer,
  }
  api.add('get', '/runs/:id/evals/:eval', looking, async ({ params, query, response }) => {
    const o = { waitMs: query.wait_s * 1000, signal: whileThere(response) }
    return evalView(await evals.wait(params.id, params.eval, o))
  })
  const cancelling = {
    name: 'cancelEval',
    says: 'Stops what goes on of an evaluation',
    body: nothing,
    answer: evalAnswer,
  }
  api.add('post', '/runs/:id/evals/:eval/cancel', cancelling, async ({ params }) =>
    evalView(await evals.cancel(params.id, params.eval)),
  )
}

function evalView({ id, runId, state, asked, version: pinned, versions, tasks, result }: EvalState) {
  return {
    eval_id: id,
    run_id: runId,
    state,
    split: asked.split,
    k: asked.k,
    pass_reward: asked.passReward,
    version: versionView(pinned),
    ...(versions && {
      versions: Object.fromEntries(Object.entries(versions).map(([policy, one]) => [policy, versionView(one)])),
    }),
    result:
      result === null
        ? null
        : {
            mean: result.mean,
            interval: result.interval,
            pass: result.pass.map(({ k, any, all, tasks: of }) => ({ k, pass_at: any, pass_all: all, tasks: of })),
            tasks: result.tasks,
            rollouts: result.rollouts,
            nulls: result.nulls,
            mixed: result.mixed,
            ...(result.meanByPolicy && { mean_by_policy: result.meanByPolicy }),
            overlap: result.overlap,
          },
    tasks: tasks.map(taskView),
  }
}

function versionView(version: EvalState['version']) {
  return version === null ? null : { version: version.ordinal, label: version.label }
}

function taskView({ task: { name: called, digest, split }, groupId, state, members }: EvalTask) {
  return { name: called, digest, split, group_id: groupId, state, members: members.map(memberView) }
}

function memberView({ rolloutId, slot, attempt, end, reward, out }: EvalMember) {
  return { rollout_id: rolloutId, slot, attempt, end, reward, out }
}
