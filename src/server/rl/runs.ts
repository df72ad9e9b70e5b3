import { isAbsolute } from 'node:path'
import { z } from 'zod'
import { drawnOf, neutralSampling, type TrainerRunState } from '../../rollout/index.ts'
import type { HandoutCounts, MemberLengths } from '../../trajectory/index.ts'
import { doubtful, generatedPlace, present } from '../../core/index.ts'
import { nodeLabels } from '../nodes/index.ts'
import { recordedName } from '../recorded-name.ts'
import { nothing, type RlApi } from './api.ts'
import type { RlParts } from './contract.ts'
import { cursorOf } from './cursor.ts'
import { incarnation, labels, name, number, pinOf, sampling, step } from './shapes.ts'

const selector = z.strictObject({
  name: z.string().min(1),
  options: z.record(z.string(), z.number()).default({}),
  window: z.int().min(1).nullable().default(null),
})

const runShape = z.strictObject({
  run_id: recordedName.nullable().default(null),
  name: z.string().min(1).max(200).default('train'),
  purpose: z.enum(['train', 'collect']).default('train'),
  model: z.string().nullable().default(null),
  /** Of several policies those that it trains; left out: all that are trained. */
  policies: z.array(z.string().min(1)).min(1).optional(),
  row_mode: z.enum(['turns', 'chains', 'tree']).default('chains'),
  staleness: z
    .strictObject({ max: z.int().min(0).default(1), mode: z.enum(['report', 'cancel', 'gate']).default('report') })
    .prefault({}),
  groups_per_step: z.int().min(1).nullable().default(null),
  mixed: z.enum(['train', 'mask']).default('train'),
  constrained: z.enum(['train', 'mask']).default('mask'),
  /** Doubtful verdicts that train all the same. */
  trusts: z.array(z.enum(doubtful)).optional(),
  sampling: sampling.prefault({}),
  capacity: z
    .strictObject({ groups: z.int().min(1) })
    .nullable()
    .default(null),
  harness: z.string().min(1).max(200).optional(),
  tasks: z
    .string()
    .refine(
      (text) => isAbsolute(text) || generatedPlace(text) !== null,
      'must be an absolute path, or <generator>:<seed>:<level>',
    )
    .optional(),
  environment: z.string().min(1).optional(),
  command: z.string().min(1).optional(),
  budgets: z.record(z.string(), z.unknown()).optional(),
  trust_tasks: z.boolean().optional(),
  /** Labels that a node needs for its rollouts. */
  needs: nodeLabels.optional(),
  /** Its events tell of each turn of its rollouts. */
  turn_events: z.boolean().optional(),
  /** What becomes of half-done rollouts while weights are moved. */
  at_weight_update: z.enum(['continue', 'shelve']).optional(),
  labels: labels.default({}),
  /** Whose logprobs of their ids rows have beside the policy's own. */
  score: z.strictObject({ reference: z.boolean().optional(), teacher: z.boolean().optional() }).optional(),
  /** The selector that says which members of its rounds train. */
  select: z.string().min(1).optional(),
  /** The run stops when a larger share of its ended rollouts has no number. */
  max_null_share: z.number().min(0).max(1).optional(),
  /** Tokens that probes of its calls may sample. */
  probe_tokens: z.int().min(0).optional(),
  feed: z
    .array(
      z.strictObject({
        set: z.string().min(1),
        weight: z.number().gt(0).max(1e6).default(1),
        n: z.int().min(1),
        /** What chooses among its tasks, by name; left out: each once in an epoch. */
        selector: z
          .union([z.string().min(1), selector])
          .transform((one) => (typeof one === 'string' ? { name: one, options: {}, window: null } : one))
          .optional(),
      }),
    )
    .min(1)
    .max(100)
    .refine((sets) => new Set(sets.map(({ set }) => set)).size === sets.length, 'must name each set once')
    .optional(),
  seed: z.int().min(0).optional(),
  /** Rounds that fail one after the other at which the feed stops. */
  feed_max_failed: z.int().min(1).max(1000).optional(),
})

/** What only means something where Paddock does the rollouts. */
const ownKeys = ['environment', 'command', 'budgets', 'trust_tasks', 'needs', 'at_weight_update', 'feed'] as const

const runBody = runShape
  .refine(({ staleness, groups_per_step: perStep }) => staleness.mode !== 'gate' || perStep !== null, {
    path: ['groups_per_step'],
    message: 'a gate has to know how many groups a step trains on',
  })
  .superRefine((asked, context) => {
    if (asked.feed === undefined && asked.seed !== undefined) {
      context.addIssue({ code: 'custom', path: ['seed'], message: 'goes with `feed`, whose order it gives' })
    }
    if (asked.feed === undefined && asked.feed_max_failed !== undefined) {
      context.addIssue({ code: 'custom', path: ['feed_max_failed'], message: 'goes with `feed`, which it stops' })
    }
    if (asked.feed !== undefined && asked.groups_per_step === null && asked.capacity === null) {
      const message = 'a feed has to know how many groups may be under way: this, or capacity'
      context.addIssue({ code: 'custom', path: ['groups_per_step'], message })
    }
    if (asked.tasks !== undefined) return
    for (const key of ownKeys) {
      if (asked[key] === undefined) continue
      context.addIssue({ code: 'custom', path: [key], message: 'goes with `tasks`, where Paddock does the rollouts' })
    }
  })

const attachBody = z.strictObject({
  resume_step: step.nullable(),
  consumer: z.string().min(1).max(200).nullable().default(null),
})

const checkpointBody = z.strictObject({ incarnation, step })

const policyState = z.strictObject({
  phase: z.enum(['pausing', 'live', 'failed']).nullable(),
  version: z.int().nullable(),
  label: z.string().nullable(),
})

const counts = z.strictObject({
  running: z.int(),
  settled_unclaimed: z.int(),
  claimed: z.int(),
  done: z.int(),
  stale: z.int(),
  failed: z.int(),
})

const runState = z.strictObject({
  run_id: name,
  name: z.string(),
  purpose: z.enum(['train', 'collect']),
  harness: z.string(),
  tasks: z.string().nullable(),
  row_mode: z.enum(['turns', 'chains', 'tree']),
  staleness: z.strictObject({ max: z.int(), mode: z.enum(['report', 'cancel', 'gate']) }),
  mixed: z.enum(['train', 'mask']),
  closed: z.boolean(),
  incarnation: incarnation.nullable(),
  policy: policyState,
  /** Of several policies each, by name. */
  policies: z.record(z.string(), policyState.extend({ trained: z.boolean(), counts })).optional(),
  halted: z.enum(['unknown_weights', 'null_share']).nullable(),
  counts,
  capacity: z.strictObject({ groups: z.int().nullable(), taken: z.int() }),
})

const length = z.strictObject({ members: z.int(), mean_tokens: number, most_tokens: z.int().nullable() })
const lookedAt = runState.extend({
  lengths: z.strictObject({
    kept: length,
    censored: length,
    by_length: z.array(
      z.strictObject({ above: z.int(), up_to: z.int(), members: z.int(), usable: z.int(), trained: z.int() }),
    ),
  }),
  feed: z
    .strictObject({
      seed: z.int(),
      drawn: z.int(),
      stopped: z.strictObject({ reason: z.enum(['groups_failed', 'selector_failed']), message: z.string() }).nullable(),
    })
    .nullable(),
})

const openedRun = runState.extend({
  strategy: z.string(),
  /** `unknown`: there is no engine yet. */
  capture: z.enum(['tokens', 'ids', 'text', 'unknown']),
  logprobs_mode: z.string(),
  notes: z.array(z.string()),
})

const attachedAnswer = z.strictObject({
  incarnation,
  resume_step: step.nullable(),
  undone: z.strictObject({ dispositions: z.int(), rows: z.int() }),
  again: z.array(name),
  stale: z.array(name),
  cursor: z.string(),
})

/** Opening a run, attaching to it, and how it stands. */
export function runRoutes(api: RlApi, { runs, trainer, reader, engine, hasEngine, sessionDefaults }: RlParts): void {
  const opening = { name: 'openRun', says: 'Opens a run', body: runBody, status: 201, answer: openedRun }
  api.add('post', '/runs', opening, async ({ body }) => {
    const {
      run_id: id,
      name: called,
      staleness,
      capacity,
      sampling: asked,
      harness,
      tasks,
      environment = 'terminal',
      command = null,
      budgets = {},
      trust_tasks: trustTasks = false,
      needs,
      max_null_share: maxNullShare,
      probe_tokens: probeTokens,
      at_weight_update: atWeightUpdate,
      turn_events: turnEvents,
      trusts,
      select,
      score,
      policies,
      feed,
      seed = 0,
      feed_max_failed: maxFailed,
      ...rest
    } = body
    const own = pinOf(asked)
    const { row_mode: rowMode, groups_per_step: groupsPerStep, ...more } = rest
    const pin = rest.purpose === 'train' ? { ...neutralSampling, ...own } : own
    const opened = await runs.open({
      id,
      name: called,
      trainer: {
        ...more,
        harness: harness ?? (tasks === undefined ? 'external' : 'reference'),
        own: tasks === undefined ? null : { tasks, environment, command, budgets, trustTasks, ...present({ needs }) },
        rowMode,
        groupsPerStep,
        staleness,
        capacity: capacity?.groups ?? null,
        pin,
        ...(score === undefined ? {} : { score: present(score) }),
        ...present({ maxNullShare, probeTokens, select, turnEvents, atWeightUpdate, policies, trusts }),
        ...(feed === undefined ? {} : { feed: { seed, sets: feed.map(present), ...present({ maxFailed }) } }),
      },
    })
    const given = engine.gives.tokenIds ? (engine.gives.logprobs ? 'tokens' : 'ids') : 'text'
    const capture = hasEngine() ? given : 'unknown'
    return {
      ...stateView(opened),
      strategy: sessionDefaults.strategy,
      capture,
      logprobs_mode: engine.logprobKind,
      notes: [...(hasEngine() ? [] : [noEngineNote]), ...notesOf(sessionDefaults.strategy)],
    } as const
  })
  const looking = { name: 'run', says: 'How a run stands', answer: lookedAt }
  api.add('get', '/runs/:id', looking, async ({ params }) => {
    const state = await runs.state(params.id)
    const { kept, censored, byLength } = await trainer.lengths(params.id)
    const { feed } = state.asked
    return {
      ...stateView(state),
      lengths: {
        kept: lengthView(kept),
        censored: lengthView(censored),
        by_length: byLength.map(({ upTo, ...band }) => ({ ...band, up_to: upTo })),
      },
      feed:
        feed === undefined
          ? null
          : { seed: feed.seed, drawn: await drawnOf(reader.catalogue, params.id), stopped: state.feedStop },
    }
  })
  const closing = { name: 'closeRun', says: 'No more groups come', body: nothing, answer: nothing }
  api.add('post', '/runs/:id/close', closing, async ({ params }) => {
    await runs.close(params.id)
    return {}
  })
  const attaching = { name: 'attach', says: 'Speaks for the run from now on', body: attachBody, answer: attachedAnswer }
  api.add('post', '/runs/:id/attach', attaching, async ({ params: { id: runId }, body }) => {
    const { resume_step: resumeStep, consumer } = body
    const attached = await runs.attach(runId, { resumeStep, consumer })
    const { again, stale, undone } = attached
    const seq = await reader.catalogue.lastRunEvent(runId)
    const cursor = cursorOf(runId, attached.incarnation, seq)
    return {
      incarnation: attached.incarnation,
      resume_step: resumeStep,
      undone,
      again,
      stale,
      cursor,
    }
  })
  const safe = { name: 'checkpoint', says: 'The weights of a step are safe', body: checkpointBody, answer: nothing }
  api.add('post', '/runs/:id/checkpoint', safe, async ({ params, body }) => {
    await trainer.checkpoint(params.id, body)
    return {}
  })
}

function lengthView({ members, meanTokens, mostTokens }: MemberLengths) {
  return { members, mean_tokens: meanTokens, most_tokens: mostTokens }
}

function stateView({
  run,
  asked,
  closed,
  incarnation: last,
  counts: own,
  capacity,
  version,
  policy,
  policies,
  passedGate,
  nullStop,
}: TrainerRunState) {
  return {
    run_id: run.id,
    name: run.name,
    purpose: asked.purpose,
    harness: asked.harness,
    tasks: asked.own?.tasks ?? null,
    row_mode: asked.rowMode,
    staleness: { ...asked.staleness, mode: passedGate ? 'report' : asked.staleness.mode },
    mixed: asked.mixed,
    closed,
    incarnation: last,
    policy: policyView({ policy, version }),
    ...(policies.length === 0
      ? {}
      : {
          policies: Object.fromEntries(
            policies.map(
              (one) =>
                [one.name, { trained: one.trained, ...policyView(one), counts: countsView(one.counts) }] as const,
            ),
          ),
        }),
    halted: haltOf({ policy, policies, nullStop }),
    counts: countsView(own),
    capacity,
  }
}

function haltOf({
  policy,
  policies,
  nullStop,
}: Pick<TrainerRunState, 'policy' | 'policies' | 'nullStop'>): 'unknown_weights' | 'null_share' | null {
  if ([policy, ...policies.map((one) => one.policy)].includes('policy_halted')) return 'unknown_weights'
  return nullStop === null ? null : 'null_share'
}

function countsView({ settledUnclaimed, ...counts }: HandoutCounts) {
  return { ...counts, settled_unclaimed: settledUnclaimed }
}

function policyView({ policy, version }: Pick<TrainerRunState, 'policy' | 'version'>) {
  return { phase: phaseOf(policy), version: version?.ordinal ?? null, label: version?.label ?? null }
}

/** Null: nothing was said of weights. */
function phaseOf(last: TrainerRunState['policy']): 'pausing' | 'live' | 'failed' | null {
  switch (last) {
    case null:
      return null
    case 'policy_pausing':
      return 'pausing'
    case 'policy_halted':
      return 'failed'
    case 'policy_live':
    case 'policy_restored':
      return 'live'
  }
}

const noEngineNote =
  'There is no engine yet: name its replicas with PUT /rl/v1/runs/{run}/engines before you ask for groups.'

function notesOf(strategy: string): readonly string[] {
  if (strategy === 'splice') return []
  return [
    'Under strategy record a prompt that the engine renders anew may fork from what was sampled: a rollout may have several rows. `paddock drift` names each fork and its cause.',
  ]
}
