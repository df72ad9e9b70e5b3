import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'
import type { NodesAnswered } from '../../rollout/index.ts'
import { adapterBody, requireAdapterAlone } from '../adapter-body.ts'
import type { RlApi } from './api.ts'
import type { RlParts } from './contract.ts'
import { incarnation, name, step, whileThere } from './shapes.ts'

const policyBody = z.strictObject({
  /** Of several policies the one whose weights these are. */
  policy: z.string().min(1).max(40).nullable().default(null),
  incarnation,
  version: z.int().min(0),
  phase: z.enum(['pausing', 'live', 'failed']),
  /** With `live`: the trainer's step whose update made these weights; null: the run starts with them. */
  step: step.nullable().optional(),
  label: z.string().min(1).max(200).nullable().default(null),
  mode: z.enum(['drain', 'keep', 'abort-resubmit']).optional(),
  timeout_s: z.number().min(1).max(86_400).default(600),
  requests: z
    .array(z.strictObject({ path: z.string().regex(/^\/[!-~]*$/, 'must be a path'), body: z.unknown() }))
    .default([]),
  adapter: adapterBody.nullable().default(null),
})

/** Throws `BODY_INVALID_SHAPE` for what an adapter has no use for. */
function requireLiveAlone({ phase, adapter, mode, requests }: z.output<typeof policyBody>): void {
  if (adapter === null) return
  if (phase !== 'live') {
    throw new PaddockError('BODY_INVALID_SHAPE', `an adapter is said with the phase \`live\`, not \`${phase}\``)
  }
  requireAdapterAlone({ mode, requests })
}

const version = z.int()
/** How nodes answered; those that were `passed` over lose their jobs to others. */
const nodes = z.strictObject({
  answered: z.int(),
  slowest: z.strictObject({ node: z.string(), duration_s: z.number() }).nullable(),
  passed: z.array(z.strictObject({ node: z.string(), why: z.enum(['lapsed', 'silent']) })),
})
const policyAnswer = z.union([
  z.strictObject({
    phase: z.literal('pausing'),
    version,
    interrupted: z.int(),
    drained: z.int(),
    kept: z.int(),
    /** Half-done rollouts that stand still until the weights are live. */
    shelved: z.int(),
    duration_s: z.number(),
    nodes,
  }),
  z.strictObject({
    phase: z.literal('live'),
    version,
    label: z.string(),
    replicas: z.array(
      z.strictObject({ url: z.string(), label: z.string().nullable(), source: z.enum(['told', 'noticed']) }),
    ),
    /** Replicas that did not get the adapter, and get no calls before they have it. */
    out: z.array(z.strictObject({ url: z.string(), why: z.string() })),
    stopped: z.array(name),
    nodes,
  }),
  z.strictObject({ phase: z.literal('failed'), version, restored: z.literal(true) }),
  z.strictObject({
    phase: z.literal('failed'),
    version,
    restored: z.literal(false),
    halted: z.literal('unknown_weights'),
  }),
])

/** What a trainer says of weights. */
export function policyRoutes(api: RlApi, { policy }: RlParts): void {
  const about = { name: 'policy', says: 'What becomes of weights', body: policyBody, answer: policyAnswer }
  api.add('post', '/runs/:id/policy', about, async ({ response, params: { id: runId }, body: asked }) => {
    requireLiveAlone(asked)
    if (asked.phase !== 'live' && asked.step !== undefined)
      throw new PaddockError('BODY_INVALID_SHAPE', `\`step\` is said with the phase \`live\`, not \`${asked.phase}\``)
    if (asked.phase === 'live' && asked.step === undefined)
      throw new PaddockError('STEP_MISSING', `weights ${asked.version} name no step`)
    const order = {
      policy: asked.policy,
      incarnation: asked.incarnation,
      ordinal: asked.version,
      step: asked.step ?? null,
      label: asked.label,
      mode: asked.mode ?? ('drain' as const),
      timeoutMs: asked.timeout_s * 1000,
      requests: asked.requests.map(({ path, body }) => ({ path, body: body ?? {} })),
      adapter: asked.adapter,
    }
    const { version: ordinal, phase } = asked
    switch (phase) {
      case 'pausing': {
        const {
          interrupted,
          drained,
          kept,
          shelved,
          durationMs,
          nodes: there,
        } = await policy.pausing(runId, order, whileThere(response))
        const outcome = { interrupted, drained, kept, shelved, duration_s: durationMs / 1000 }
        return { phase, version: ordinal, ...outcome, nodes: shown(there) }
      }
      case 'live': {
        const { label, replicas, out, stopped, nodes: there } = await policy.live(runId, order, whileThere(response))
        const seen = replicas.map(({ url, weightVersion, told }) => ({
          url,
          label: weightVersion,
          source: told ? ('told' as const) : ('noticed' as const),
        }))
        return { phase, version: ordinal, label, replicas: seen, out: [...out], stopped, nodes: shown(there) }
      }
      case 'failed':
        return { phase, version: ordinal, ...(await policy.failed(runId, order)) }
    }
  })
}

function shown({ answered, slowest, passed }: NodesAnswered): z.input<typeof nodes> {
  const last = slowest === null ? null : { node: slowest.node, duration_s: slowest.durationMs / 1000 }
  return { answered, slowest: last, passed: [...passed] }
}
