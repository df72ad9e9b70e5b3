import { z } from 'zod'
import { PaddockError, trusts } from '../../core/index.ts'
import { admittedAs } from '../../access/index.ts'
import type { Verification } from '../../rollout/index.ts'
import type { RlApi } from './api.ts'
import type { RlParts } from './contract.ts'
import { longestWaitS, name, number, whileThere } from './shapes.ts'

/** Of an archive as it is sent, and of an answer. What files may be together is that of artifacts out of a box. */
const mostArchiveBytes = 32 << 20
const mostAnswer = 262_144

/** Long enough for most verifiers, so that one request is one verdict. */
const waitS = z.coerce.number().min(0).max(longestWaitS).default(longestWaitS)
const query = z.object({ wait_s: waitS })

const body = z
  .strictObject({
    /** Whoever asks again with it hears of the same verification. */
    idempotency_key: z.string().regex(/^[\x20-\x7e]{1,200}$/, 'must be 1 to 200 printable ASCII characters'),
    /** By digest; with a run whose tasks Paddock reads, by name too. */
    task: z.union([z.string().min(1), z.strictObject({ digest: z.string().min(1) })]),
    run_id: z.string().min(1).nullable().default(null),
    /** A tar, perhaps with gzip, as base64. */
    archive: z
      .string()
      .max(Math.ceil(mostArchiveBytes / 3) * 4, `may be at most ${mostArchiveBytes >> 20} MiB before base64`)
      .meta({ contentEncoding: 'base64' })
      .nullable()
      .default(null),
    answer: z.string().max(mostAnswer).nullable().default(null),
  })
  .refine(({ archive, answer }) => archive !== null || answer !== null, 'bring an `archive`, an `answer`, or both')

const verdict = z.strictObject({
  status: z.string(),
  /** Null: nobody knows; never 0 for a fault of ours. */
  reward: number,
  /** Why there is no number. */
  reason: z.string().nullable(),
  components: z.record(z.string(), z.number()),
  evidence: z.string(),
  trust: z.enum(trusts),
  verifier: z.strictObject({ id: z.string(), version: z.string(), sha256: z.string() }),
  /** What was looked at, by its content. It is not kept. */
  artifacts: z.array(z.strictObject({ path: z.string(), sha256: z.string(), size_bytes: z.int() })),
  cost_tokens: z.int(),
})
const answer = z.strictObject({
  idempotency_key: name,
  state: z.enum(['pending', 'done']),
  /** The rest is null while it is pending. */
  task_digest: name.nullable(),
  /** Milliseconds since the epoch. */
  at: z.number().nullable(),
  verdict: verdict.nullable(),
})

/** Verdicts on work that was done elsewhere. */
export function verifyRoutes(api: RlApi, { verifications }: RlParts): void {
  const verifying = { name: 'verify', says: 'A verdict on work that was done elsewhere', query, body, answer }
  api.add('post', '/verify', verifying, async ({ request, response, body: asked, query: { wait_s: wait } }) => {
    const work = {
      key: asked.idempotency_key,
      token: admittedAs(request).caller.name,
      task: typeof asked.task === 'string' ? asked.task : asked.task.digest,
      runId: asked.run_id,
      archive: asked.archive === null ? null : bytesOf(asked.archive),
      answer: asked.answer,
    }
    return viewOf(await verifications.verify(work, { waitMs: wait * 1000, signal: whileThere(response) }))
  })
  const looking = { name: 'verification', says: 'How a verification stands', query, answer }
  api.add('get', '/verify/:key', looking, async ({ response, params, query: { wait_s: wait } }) =>
    viewOf(await verifications.look(params.key, { waitMs: wait * 1000, signal: whileThere(response) })),
  )
}

function bytesOf(base64: string): Buffer {
  const bytes = Buffer.from(base64, 'base64')
  if (bytes.toString('base64').length === base64.length) return bytes
  throw new PaddockError('BODY_INVALID_SHAPE', 'body.archive: is no base64', { data: { place: 'body.archive' } })
}

function viewOf(one: Verification) {
  if (one.state === 'pending')
    return { idempotency_key: one.key, state: one.state, task_digest: null, at: null, verdict: null }
  const { id, taskDigest, at, verdict } = one.record
  const { status, components, evidence, trust, verifier, artifacts, costTokens } = verdict
  return {
    idempotency_key: id,
    state: one.state,
    task_digest: taskDigest,
    at,
    verdict: {
      status,
      reward: verdict.reward,
      reason: verdict.reward === null ? verdict.reason : null,
      components,
      evidence,
      trust,
      verifier,
      artifacts: artifacts.map(({ path, sha256, sizeBytes }) => ({ path, sha256, size_bytes: sizeBytes })),
      cost_tokens: costTokens,
    },
  }
}
