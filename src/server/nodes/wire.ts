/** What coordinator and node say to each other. Both are Paddocks of one version, which is looked at first. */
import { z } from 'zod'
import { isId, trusts } from '../../core/index.ts'
import { evidenceLimit } from '../../reward/index.ts'
import type { NodeJob, NodeVerification, ToldWeights } from '../../rollout/index.ts'

/** Grows with every change of these messages. */
export const nodeProtocol = 5

const id = z.string().refine(isId, 'not an id')
const digest = z.string().regex(/^[0-9a-f]{64}$/)
const count = z.int().min(0).max(1_000_000)
const token = z.int().min(1)
/** So long an answer is held back while there is nothing to say. */
const waitMs = z.int().min(0).max(30_000)

/** Name of a node: what rollouts that it ran are labelled with. */
export const nodeName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'letters, digits, dots, dashes; at most 100')
export const nodeLabel = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9=._-]{0,99}$/, 'letters, digits, =, dots, dashes')
/** What a node has, or needs for a rollout. */
export const nodeLabels = z.array(nodeLabel).max(100)

/** Looked at before anything else of a body, which may be another version's. */
export const versions = z.looseObject({ protocol: z.int(), paddock: z.string().max(100) })

export const openBody = z.strictObject({
  protocol: z.int(),
  paddock: z.string(),
  name: nodeName,
  labels: nodeLabels,
})

const engines = z.strictObject({
  urls: z.array(z.string()).min(1),
  kind: z.enum(['vllm', 'sglang', 'llamacpp', 'openai']),
  model: z.string(),
})

/** Where the engine is; null: there is none yet. */
export type NodeEngines = z.output<typeof engines>

/** Of one version on both sides. */
const weights = z.custom<ToldWeights>((value) => typeof value === 'object' && value !== null && 'mark' in value)

export const openAnswer = z.object({
  session_id: id,
  lease_ms: z.number(),
  engines: engines.nullable(),
  weights,
  /** Another number than before: what was handed in before may be lost, and is handed in again. */
  rewound: z.int(),
})

const mark = z.string().max(200)

/** What a node has done of what it was told of the engine; answered when something else holds, or the wait is over. */
export const weightsBody = z.strictObject({
  mark,
  failed: z.strictObject({ code: z.string().max(100), message: z.string().max(2000) }).nullable(),
  also: z.array(id).max(1000),
  wait_ms: waitMs,
})

export const weightsAnswer = z.object({ weights })

const held = z.strictObject({ job_id: id, token })
export const beatBody = z.strictObject({ jobs: z.array(held).max(10_000) })

export const beatAnswer = z.object({
  alive: z.boolean(),
  stop: z.array(z.object({ job_id: id, why: z.enum(['cancelled', 'lost', 'over']) })),
  engines: engines.nullable(),
  rewound: z.int(),
})

export const claimBody = z.strictObject({
  request_id: id,
  limit: z.int().min(1).max(64),
  /** What is free on the node, by name. */
  capacity: z.record(nodeLabel, count).refine((all) => Object.keys(all).length <= 100, 'at most 100 names'),
  /** Runs that the node cannot do. */
  without: z.array(z.string().max(200)).max(1000).default([]),
  /** What the node was told last of the engine, and has done. */
  mark,
  /** What it was told last of the catalogue, and has handed in again. */
  rewound: z.int(),
  wait_ms: waitMs.default(0),
})

/** Of one version on both sides; what stands in it was checked when it was recorded. */
const job = z.custom<NodeJob>((value) => typeof value === 'object' && value !== null && 'lease' in value)
export const claimAnswer = z.object({ jobs: z.array(job) })

/** Of a lease, where a body is none. */
export const tokenQuery = z.object({ token: z.coerce.number().int().min(1) })

/** SHA-256 of what is sent. */
export const digestHeader = 'paddock-digest'

export const handInQuery = z.strictObject({
  token: z.coerce.number().int().min(1),
  digest,
  fault: z
    .string()
    .regex(/^[A-Z_]{1,100}$/)
    .optional(),
})

export const handInAnswer = z.object({ repeated: z.boolean(), state: z.string() })

export const giveBackBody = z.strictObject({
  token,
  why: z.enum(['drain', 'failure']),
  reason: z.string().max(2000).nullable(),
})

export const giveBackAnswer = z.object({ given_back: z.boolean() })

export const claimVerificationsBody = z.strictObject({
  request_id: id,
  limit: z.int().min(1).max(64),
  /** Environments that the node cannot verify. */
  without: z.array(z.string().max(200)).max(1000).default([]),
  wait_ms: waitMs.default(0),
})

const verification = z.custom<NodeVerification>(
  (value) => typeof value === 'object' && value !== null && 'lease' in value && 'order' in value,
)
export const claimVerificationsAnswer = z.object({ jobs: z.array(verification) })

const draftFacts = {
  components: z.record(z.string(), z.number()),
  steps: z.array(z.strictObject({ callId: id, value: z.number() })),
  evidence: z.string().max(evidenceLimit),
  artifacts: z.array(
    z.strictObject({ path: z.string(), sha256: digest, sizeBytes: z.number(), step: z.string().exactOptional() }),
  ),
  verifier: z.strictObject({ id: z.string(), version: z.string(), sha256: digest }),
  trust: z.enum(trusts),
  costTokens: z.number(),
}

/** What a node made of a verification: a number, why there is none, or what there was nothing to verify without. */
export const verifiedBody = z.strictObject({
  came: z.union([
    z.strictObject({ status: z.enum(['scored', 'hacked']), reward: z.number(), ...draftFacts }),
    z.strictObject({
      status: z.enum(['pending', 'unscorable', 'infra_error', 'gold_error', 'judge_failed']),
      reward: z.null(),
      reason: z.string(),
      ...draftFacts,
    }),
    z.strictObject({ missing: z.string() }),
  ]),
})

const file = z.union([
  z.object({ path: z.string(), sha256: digest, sizeBytes: z.number(), executable: z.boolean() }),
  z.object({ path: z.string(), link: z.string() }),
])
export const filesAnswer = z.object({ digest, name: z.string(), single: z.string().nullable(), files: z.array(file) })
