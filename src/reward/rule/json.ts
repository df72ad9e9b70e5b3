import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { type Rule, verdictOf } from './rule.ts'

/** 1 when the answer is JSON and means the same as gold: key order and white space do not count, array order does. */
export function jsonEqual(gold: unknown): Rule {
  return (answer) => {
    const given = parse(answer)
    if (!given.ok) return verdictOf(false, given.why)
    const equal = isDeepStrictEqual(normaliseZero(given.value), normaliseZero(gold))
    return verdictOf(equal, equal ? 'equal JSON' : `differs: ${JSON.stringify(given.value).slice(0, 200)}`)
  }
}

/** 1 when the answer is JSON that fits a JSON schema (draft 2020-12, as far as zod reads it). Throws on a bad schema. */
export function jsonSchema(schema: Readonly<Record<string, unknown>>): Rule {
  const shape = z.fromJSONSchema(schema)
  return (answer) => {
    const given = parse(answer)
    if (!given.ok) return verdictOf(false, given.why)
    const checked = shape.safeParse(given.value)
    return checked.success ? verdictOf(true, 'fits the schema') : verdictOf(false, z.prettifyError(checked.error))
  }
}

type Parsed = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly why: string }

/** Deepest nesting that is compared: what lies deeper is no answer, and comparing it would end the stack. */
const deepest = 500

function parse(answer: string): Parsed {
  try {
    const value: unknown = JSON.parse(answer)
    return isDeeper(value) ? { ok: false, why: `nested deeper than ${deepest}` } : { ok: true, value }
  } catch {
    return { ok: false, why: 'not JSON' }
  }
}

/** Level by level, so that no depth is too much. */
function isDeeper(value: unknown): boolean {
  let level: readonly unknown[] = [value]
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > deepest) return true
    level = level.flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []))
  }
  return false
}

// JSON knows one zero; a deep strict comparison knows two.
function normaliseZero(value: unknown): unknown {
  if (value === 0) return 0
  if (Array.isArray(value)) return value.map(normaliseZero)
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, normaliseZero(inner)]))
  }
  return value
}
