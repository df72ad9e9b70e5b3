import { z } from 'zod'
import { PaddockError } from '../core/index.ts'

/** The LoRA adapter that weights are. */
export const adapterBody = z.strictObject({
  name: z
    .string()
    .min(1)
    .max(200)
    .regex(/^[^"\\\p{Cc}]+$/u, 'must be plain text'),
  path: z.string().min(1).max(4096).nullable().default(null),
})

/** Throws `BODY_INVALID_SHAPE` for what an adapter has no use for, where it was asked for. */
export function requireAdapterAlone({
  mode,
  cache,
  requests,
}: {
  readonly mode?: unknown
  readonly cache?: unknown
  readonly requests: readonly unknown[]
}): void {
  const given = mode !== undefined ? 'mode' : cache !== undefined ? 'cache' : null
  const why =
    given !== null
      ? `nothing is paused for an adapter: leave \`${given}\` out`
      : requests.length > 0
        ? 'an adapter leaves the weights below it as they are: leave `requests` out'
        : null
  if (why !== null) throw new PaddockError('BODY_INVALID_SHAPE', why)
}
