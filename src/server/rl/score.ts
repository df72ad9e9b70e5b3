import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'
import type { RlApi } from './api.ts'
import type { RlParts } from './contract.ts'

/** A batch is one round at most; longer ones are asked for in parts. */
const mostSequences = 256
const mostIds = 262_144

const body = z.strictObject({
  sequences: z
    .array(
      z.strictObject({
        ids: z.array(z.int().min(0).max(2_147_483_647)).min(1).max(mostIds),
        /** The first position whose logprob is wanted. */
        from: z.int().min(0).default(0),
      }),
    )
    .min(1)
    .max(mostSequences),
  /** Whose engine scores them. */
  role: z.enum(['policy', 'reference', 'teacher']).default('policy'),
  /** Of several policies the one whose engine that is, for role `policy`. */
  policy: z.string().min(1).max(40).nullable().default(null),
  if_version: z.string().min(1).optional(),
})
const answer = z.strictObject({
  kind: z.string(),
  temperature: z.literal(1),
  version: z.strictObject({ label: z.string().nullable(), source: z.enum(['told', 'noticed']) }),
  /** Shape [T - from] each; null for the first id of a sequence. */
  sequences: z.array(z.strictObject({ from: z.int(), logprobs: z.array(z.number().nullable()) })),
})

/** Logprobs of given ids under the weights that there are: for old, clean and teacher contexts. Nothing of it is recorded. */
export function scoreRoutes(api: RlApi, { scoreIds }: RlParts): void {
  const about = { name: 'score', says: 'Logprobs of given ids', body, answer }
  api.add('post', '/score', about, async ({ body: { sequences, role, policy, if_version: ifVersion = null } }) => {
    if (policy !== null && role !== 'policy') {
      throw new PaddockError('BODY_INVALID_SHAPE', 'policy: goes with the role `policy`')
    }
    const scores = await scoreIds(role, policy, {
      sequences: sequences.map(({ ids }) => Int32Array.from(ids)),
      ifVersion,
    })
    return {
      kind: scores.kind,
      temperature: 1 as const,
      version: { label: scores.weightVersion, source: scores.told ? ('told' as const) : ('noticed' as const) },
      sequences: sequences.map(({ from }, at) => ({ from, logprobs: (scores.logprobs[at] ?? []).slice(from) })),
    }
  })
}
