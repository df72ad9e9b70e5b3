import { canonicalText, duplicateKeys, type LosslessJson, maxNesting, parseLossless } from '../../core/index.ts'
import { keepsDigits } from './decimal.ts'
import { type TextRule, verdictOf } from './rule.ts'

/** How the gold of {@link jsonEqual} is given. */
export interface JsonGoldOptions {
  /** The gold is JSON text, so that every number keeps its digits. Default: it is a value; a large integer is a bigint. */
  readonly text?: boolean
}

/** A JSON text as it was read, or why it was not. */
type JsonAnswer = { readonly ok: true; readonly value: LosslessJson } | { readonly ok: false; readonly why: string }

export function jsonEqual(gold: unknown, o: JsonGoldOptions = {}): TextRule {
  const read = readJson(o.text === true ? String(gold) : jsonOf(gold))
  if (!read.ok) throw new RangeError(`The gold cannot be compared: ${read.why}.`)
  const wanted = canonicalText(read.value)
  return (answer) => {
    const given = readJson(answer)
    if (!given.ok) return verdictOf(false, given.why)
    const found = canonicalText(given.value)
    return verdictOf(found === wanted, found === wanted ? 'equal JSON' : `differs: ${answer.trim().slice(0, 200)}`)
  }
}

/** Reads JSON that has one meaning: strictly, at most 256 levels deep, no key twice in an object. */
export function readJson(text: string): JsonAnswer {
  let value: LosslessJson
  try {
    value = parseLossless(text)
  } catch (error) {
    const why = String(error instanceof Error ? error.message : error)
    return { ok: false, why: why.includes('nested') ? `nested deeper than ${maxNesting}` : 'not JSON' }
  }
  const [twice] = duplicateKeys(value)
  return twice === undefined ? { ok: true, value } : { ok: false, why: `the key ${twice} is there twice` }
}

/** JSON text of a value. Throws RangeError for what JSON cannot say, and for a number whose digits are lost. */
export function jsonOf(value: unknown, path = 'gold'): string {
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'number') {
    if (keepsDigits(value)) return JSON.stringify(value)
    throw new RangeError(
      `${path} is ${value}: JavaScript keeps 15 digits of a number this large. Give a bigint, or the gold as JSON text.`,
    )
  }
  if (Array.isArray(value)) return `[${value.map((item, i) => jsonOf(item, `${path}[${i}]`)).join(',')}]`
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).flatMap(([key, item]) =>
      item === undefined ? [] : [`${JSON.stringify(key)}:${jsonOf(item, `${path}.${key}`)}`],
    )
    return `{${members.join(',')}}`
  }
  const text = JSON.stringify(value)
  if (text === undefined) throw new RangeError(`${path} is no JSON value.`)
  return text
}
