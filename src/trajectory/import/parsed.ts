import type { z } from 'zod'
import { problemsOf } from '../problems.ts'
import { invalid } from './invalid.ts'

/** A value of a file by its schema. Throws `IMPORT_INVALID`. */
export function parsed<Schema extends z.ZodType>(schema: Schema, text: string, place: string): z.infer<Schema> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw invalid(place, `it is no JSON (${error instanceof Error ? error.message : String(error)})`)
  }
  const result = schema.safeParse(value)
  if (!result.success) throw invalid(place, problemsOf(result.error))
  return result.data
}
