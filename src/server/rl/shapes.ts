/** Parts that several routes take. */
import { z } from 'zod'
import { PaddockError, present } from '../../core/index.ts'

export { rolloutEnd } from '../rollout-end.ts'
export { whileThere } from '../while-there.ts'

/** Longest time that a request may wait. */
export const longestWaitS = 60

export const waitS = z.coerce.number().min(0).max(longestWaitS).default(0)
export const leaseS = z.number().min(1).max(86_400)
export const incarnation = z.int().min(1)
export const step = z.int().min(0)
export const labels = z.record(z.string(), z.string())

export const sampling = z.strictObject({
  temperature: z.number().min(0).optional(),
  top_p: z.number().gt(0).max(1).optional(),
  top_k: z.int().min(-1).optional(),
  min_p: z.number().min(0).max(1).optional(),
  max_tokens: z.int().min(1).optional(),
})

/** An id of a run, group, rollout, session, claim. */
export const name = z.string()
export const number = z.number().nullable()
export const version = z.strictObject({ version: z.int(), label: z.string() })
/** Why a member has no part. */
export const outs = z.enum(['infra', 'cancelled', 'censored', 'late', 'tainted', 'no_number'])

/** Sampling as a run's sessions are held to it. */
export function pinOf({
  temperature,
  top_p: topP,
  top_k: topK,
  min_p: minP,
  max_tokens: maxTokens,
}: z.infer<typeof sampling>) {
  return present({ temperature, topP, topK, minP, maxTokens })
}

/** A task as a trainer names it. */
export const task = z.union([
  z.string().min(1),
  z.strictObject({ name: z.string().min(1), instruction: z.string() }),
  z.strictObject({ digest: z.string() }),
])

/** A part of a path that is a number. */
export function countOf(text: string | undefined, what: string): number {
  const count = Number(text)
  if (Number.isInteger(count) && count >= 0) return count
  throw new PaddockError('NOT_FOUND', `there is no ${what} ${text ?? ''}`)
}
