import type { z } from 'zod'
import { PaddockError } from '../core/index.ts'

/** Parses a part of a request or throws `BODY_INVALID_SHAPE` with the place. */
export function parse<T>(schema: z.ZodType<T>, value: unknown, part: string): T {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const issue = result.error.issues[0]
  const place = [part, ...(issue?.path ?? [])].map(String).join('.')
  throw new PaddockError('BODY_INVALID_SHAPE', `${place}: ${issue?.message ?? 'not valid'}`, { data: { place } })
}
