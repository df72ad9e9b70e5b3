import { z } from 'zod'
import { onCuts } from '../../trajectory/index.ts'
import { name, number, outs, rolloutEnd } from './shapes.ts'

const place = z.tuple([z.int(), z.int()])
const cut = z.enum(onCuts).nullable()
const labels = z.record(z.string(), z.string())

const messageSpan = z.strictObject({
  start: z.int(),
  end: z.int(),
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']).nullable(),
  part: z.enum(['content', 'scaffold', 'answer', 'unknown']),
  tool_call_id: z.string().nullable(),
  tool: z.string().nullable(),
  status: z.enum(['ok', 'error', 'timeout', 'infra']).nullable(),
})

const row = z.strictObject({
  row_id: z.string(),
  rollout_id: name,
  session_id: name,
  policy: z.string().optional(),
  role: z.string(),
  node_ids: z.array(name),
  is_last: z.boolean(),
  fork_reason: z.string().nullable(),
  end: rolloutEnd.nullable(),
  cut,
  usable: z.boolean(),
  unusable_reason: z.string().nullable(),
  reward: number,
  weight: z.number(),
  rows_of_rollout: z.int(),
  trained_tokens_of: z.strictObject({ row: z.int(), rollout: z.int(), group: z.int() }),
  prompt_len: z.int(),
  n_tokens: z.int(),
  versions: z.array(z.tuple([z.int(), z.int(), z.int(), z.int()])),
  temperatures: z.array(z.tuple([z.int(), z.int(), number])),
  turn_spans: z.array(place),
  turn_nodes: z.array(z.int()).nullable(),
  observation_spans: z.array(place),
  mask_reasons: z.array(z.tuple([z.int(), z.int(), z.string()])),
  logprob_kind: z.string(),
  message_spans: z.array(messageSpan).optional(),
  arrays: z.strictObject({
    token_ids: z.array(z.int()),
    loss_mask: z.array(z.int()),
    logprobs: z.array(number),
    entropies: z.array(number).optional(),
    observation_mask: z.array(z.int()).optional(),
    ref_logprobs: z.array(number).nullable().optional(),
    teacher_logprobs: z.array(number).nullable().optional(),
  }),
})

const scores = z.strictObject({
  model: z.string().nullable(),
  version: z.string().nullable(),
  kind: z.string().nullable(),
  temperature: z.literal(1),
  engine: z.string().nullable(),
  missing: z.string().nullable(),
})

/** The rows of a round where JSON is asked for; in the binary body arrays are places. */
export const rowsAnswer = z.strictObject({
  run_id: name,
  group_id: name,
  round: z.int(),
  row_mode: z.enum(['turns', 'chains', 'tree']),
  claim_id: name.nullable(),
  policy: z.strictObject({ name: z.string(), version: z.int().nullable() }),
  task: z.strictObject({ digest: z.string(), name: z.string(), instruction: z.string() }),
  outcome_stopped: z.boolean(),
  labels,
  members: z.array(
    z.strictObject({
      rollout_id: name,
      slot: z.int(),
      attempt: z.int(),
      out: outs.nullable(),
      end: rolloutEnd.nullable(),
      cut,
      reward: number,
      status: z.string().nullable(),
      sampled_tokens: z.int(),
      harness: z.string(),
      labels,
      findings: z.array(z.string()),
      filtered: z.string().nullable().optional(),
      forked_from: z.strictObject({ rollout_id: name, call_id: name }).nullable(),
    }),
  ),
  scores: z.strictObject({ reference: scores.optional(), teacher: scores.optional() }).optional(),
  nodes: z
    .array(
      z.strictObject({
        parent: z.int().nullable(),
        depth: z.int(),
        rollouts: z.array(name),
        count: z.int(),
        value: number,
      }),
    )
    .nullable(),
  rows: z.array(row),
})
