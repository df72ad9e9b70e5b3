import { createRequire } from 'node:module'
import type * as formats from 'ajv-formats'
import type { AnySchema, ErrorObject, KeywordDefinition } from 'ajv'
import type * as draft from 'ajv/dist/2020.js'
import type { DataValidationCxt } from 'ajv/dist/types/index.js'
import { canonicalText, type LosslessJson } from '../../core/index.ts'
import { compare, type Decimal, isWhole, read } from './decimal.ts'
import { jsonOf, readJson } from './json.ts'
import { type TextRule, verdictOf } from './rule.ts'

export function jsonSchema(schema: Readonly<Record<string, unknown>>): TextRule {
  jsonOf(schema, 'schema')
  const numbers = new Numbers()
  const allows = compiled(schema, numbers)
  return (answer) => {
    const given = readJson(answer)
    if (!given.ok) return verdictOf(false, given.why)
    const value = numbers.shown(given.value)
    if (value.outOfRange !== null) return verdictOf(false, `the number ${value.outOfRange} is too long to be compared`)
    return allows(value.shown)
      ? verdictOf(true, 'the schema allows it')
      : verdictOf(false, (allows.errors ?? []).slice(0, 5).map(lineOf).join('; '))
  }
}

function lineOf({ instancePath, message, params }: ErrorObject): string {
  const what = 'additionalProperty' in params ? ` (${String(params['additionalProperty'])})` : ''
  return `${instancePath === '' ? 'the answer' : instancePath} ${message ?? 'does not fit'}${what}`
}

function compiled(schema: AnySchema, numbers: Numbers) {
  // Loaded by who asks: most programs with this room compare with no schema.
  const load = createRequire(import.meta.url)
  const { Ajv2020 } = load('ajv/dist/2020.js') as typeof draft
  const { default: addFormats } = load('ajv-formats') as typeof formats
  const ajv = new Ajv2020({ ownProperties: true, strictTypes: false, strictTuples: false })
  addFormats.default(ajv)
  // A word of OpenAPI that ajv honours and draft 2020-12 does not know.
  ajv.removeKeyword('nullable')
  for (const definition of numbers.keywords()) {
    ajv.removeKeyword(String(definition.keyword))
    ajv.addKeyword(definition)
  }
  try {
    return ajv.compile(schema)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.replace(/^strict mode: /, '') : String(cause)
    throw new RangeError(`The schema cannot be used: ${why}.`, { cause })
  }
}

const bounds: Readonly<Record<string, (value: Decimal, bound: Decimal) => boolean>> = {
  minimum: (value, bound) => compare(value, bound) >= 0,
  maximum: (value, bound) => compare(value, bound) <= 0,
  exclusiveMinimum: (value, bound) => compare(value, bound) > 0,
  exclusiveMaximum: (value, bound) => compare(value, bound) < 0,
  multipleOf: isMultiple,
}

/** Shows an answer to a validator of doubles, and keeps the digits behind it. */
class Numbers {
  /** Items of each array and members of each object that is shown, as they were written. */
  readonly #written = new WeakMap<object, ReadonlyMap<string | number, LosslessJson>>()
  readonly #wholes = new WeakMap<object, LosslessJson>()
  #root: LosslessJson | null = null

  /** `outOfRange`: a number that is longer than is compared. */
  shown(root: LosslessJson): { readonly shown: unknown; readonly outOfRange: string | null } {
    this.#root = root
    let outOfRange: string | null = null
    const show = (value: LosslessJson): unknown => {
      switch (value.kind) {
        case 'array': {
          const items = value.items.map(show)
          this.#written.set(items, new Map(value.items.entries()))
          this.#wholes.set(items, value)
          return items
        }
        case 'object': {
          const members = Object.fromEntries(value.members.map(({ key, value: inner }) => [key, show(inner)]))
          this.#written.set(members, new Map(value.members.map(({ key, value: inner }) => [key, inner])))
          this.#wholes.set(members, value)
          return members
        }
        case 'number': {
          const number = read(value.text)
          if (number === null) outOfRange ??= value.text.slice(0, 40)
          return number === null ? 0 : doubleOf(number)
        }
        case 'null':
          return null
        default:
          return value.value
      }
    }
    return { shown: show(root), outOfRange }
  }

  /** The keywords whose meaning hangs on digits. */
  keywords(): readonly (KeywordDefinition & { readonly keyword: string })[] {
    return [
      ...Object.entries(bounds).map(([keyword, holds]) => ({
        keyword,
        type: 'number' as const,
        schemaType: 'number' as const,
        compile: (bound: number) => {
          const wanted = decimalOf({ kind: 'number', text: String(bound) })
          return (_data: unknown, context?: DataValidationCxt) => holds(decimalOf(this.#of(_data, context)), wanted)
        },
      })),
      {
        keyword: 'const',
        compile: (wanted: unknown) => this.#oneOf([wanted]),
      },
      {
        keyword: 'enum',
        schemaType: 'array' as const,
        compile: (wanted: readonly unknown[]) => this.#oneOf(wanted),
      },
      {
        keyword: 'uniqueItems',
        type: 'array' as const,
        schemaType: 'boolean' as const,
        compile: (unique: boolean) => (data: unknown) => {
          const whole = this.#of(data)
          const items = whole.kind === 'array' ? whole.items.map(canonicalText) : []
          return !unique || new Set(items).size === items.length
        },
      },
    ]
  }

  #oneOf(wanted: readonly unknown[]) {
    const texts = new Set(wanted.map((value) => canonicalText(losslessOf(value))))
    return (data: unknown, context?: DataValidationCxt): boolean => texts.has(canonicalText(this.#of(data, context)))
  }

  /** A value as it was written. What no answer holds, such as a part of the schema, is as it is. */
  #of(data: unknown, context?: DataValidationCxt): LosslessJson {
    if (typeof data === 'object' && data !== null) return this.#wholes.get(data) ?? losslessOf(data)
    if (typeof data !== 'number' || context === undefined) return losslessOf(data)
    const { instancePath, parentData, parentDataProperty } = context
    if (instancePath === '' && this.#root?.kind === 'number') return this.#root
    const parent: unknown = parentData
    const written = typeof parent === 'object' && parent !== null ? this.#written.get(parent) : undefined
    return written?.get(parentDataProperty) ?? losslessOf(data)
  }
}

/** A double that is whole if the digits are: the validator asks no more of it. */
function doubleOf({ value, exact }: { readonly value: number; readonly exact: Decimal }): number {
  if (Number.isInteger(value) === isWhole(exact)) return value
  return isWhole(exact) ? 1 : 0.5
}

function losslessOf(value: unknown): LosslessJson {
  const read = readJson(jsonOf(value, 'schema'))
  if (!read.ok) throw new RangeError(read.why)
  return read.value
}

function decimalOf(value: LosslessJson): Decimal {
  const number = value.kind === 'number' ? read(value.text) : null
  if (number === null) throw new RangeError('A bound of the schema is too long to be compared.')
  return number.exact
}

function isMultiple(value: Decimal, of: Decimal): boolean {
  const scale = Math.max(value.scale, of.scale)
  const digits = (one: Decimal): bigint => one.digits * 10n ** BigInt(scale - one.scale)
  return digits(value) % digits(of) === 0n
}
