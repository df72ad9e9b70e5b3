import { quote, type Rule, verdictOf } from './rule.ts'

/** How far from gold a number may be: the larger of both bounds counts. Default: equal. */
export interface Tolerance {
  readonly absolute?: number
  /** Fraction of the gold's magnitude. */
  readonly relative?: number
}

/** `digits / 10 ** scale`, exactly. */
interface Decimal {
  readonly digits: bigint
  readonly scale: number
}

const numberPattern = /^([+-]?)(\d+(?:,\d{3})*(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d+))?$/
/** Longest text that is read as a number, and largest exponent: a double's digits end far below both. */
const longest = 5000
const largestExponent = 1000

/**
 * Reads one decimal number: sign, thousands commas in groups of three, exponent, a trailing percent sign (divided by
 * 100). Null for anything else: `1,2` , `0x10`, `1 2`, the empty text.
 */
export function parseNumber(text: string): number | null {
  return read(text)?.value ?? null
}

/**
 * 1 when the answer is one number within tolerance of gold, by their digits: `9007199254740992.0` is not `9007199254740993`,
 * and 1.1 is 0.1 from 1. A fraction that a double prints as is also met by the same double (0.1 by `0.10000000000000001`).
 */
export function numeric(gold: number | string, tolerance: Tolerance = {}): Rule {
  const wanted = read(String(gold))
  if (wanted === null) throw new RangeError(`The gold ${quote(String(gold))} is not a number.`)
  const bound = larger(decimalOf(tolerance.absolute), times(decimalOf(tolerance.relative), wanted.exact))
  // What a double prints as stands for the double.
  const printed = read(String(wanted.value))?.exact
  const isDouble = !isWhole(wanted.exact) && printed !== undefined && compare(printed, wanted.exact) === 0
  return (answer) => {
    const given = read(answer)
    if (given === null) return verdictOf(false, `${quote(answer)} is not a number`)
    const distance = magnitude(minus(given.exact, wanted.exact))
    const passes = (isDouble && given.value === wanted.value) || compare(distance, bound) <= 0
    return verdictOf(
      passes,
      `${textOf(given.exact)} is ${textOf(distance)} from ${textOf(wanted.exact)}, allowed ${textOf(bound)}`,
    )
  }
}

function read(text: string): { readonly value: number; readonly exact: Decimal } | null {
  const trimmed = text.trim()
  if (trimmed.length > longest) return null
  const percent = trimmed.endsWith('%')
  const body = (percent ? trimmed.slice(0, -1).trim() : trimmed).replace(/^\u2212/, '-')
  const [, sign = '', written = '', exponent = '0'] = numberPattern.exec(body) ?? []
  if (written === '' || Math.abs(Number(exponent)) > largestExponent) return null
  const plain = written.replaceAll(',', '')
  const value = Number(`${sign}${plain}e${exponent}`)
  if (!Number.isFinite(value)) return null
  const [before = '', behind = ''] = plain.split('.')
  const digits = BigInt(`${before}${behind}`)
  const exact = shifted(sign === '-' ? -digits : digits, Number(exponent) - behind.length - (percent ? 2 : 0))
  return { value: percent ? value / 100 : value, exact }
}

function decimalOf(bound: number | undefined): Decimal {
  const found = bound === undefined ? read('0') : read(String(bound))
  if (found === null || found.exact.digits < 0n)
    throw new RangeError(`The tolerance ${bound} is not a number from 0 on.`)
  return found.exact
}

function shifted(digits: bigint, by: number): Decimal {
  return by >= 0 ? { digits: digits * 10n ** BigInt(by), scale: 0 } : { digits, scale: -by }
}

function at(scale: number, of: Decimal): bigint {
  return of.digits * 10n ** BigInt(scale - of.scale)
}

function minus(a: Decimal, b: Decimal): Decimal {
  const scale = Math.max(a.scale, b.scale)
  return { digits: at(scale, a) - at(scale, b), scale }
}

function times(a: Decimal, b: Decimal): Decimal {
  return magnitude({ digits: a.digits * b.digits, scale: a.scale + b.scale })
}

function magnitude({ digits, scale }: Decimal): Decimal {
  return { digits: digits < 0n ? -digits : digits, scale }
}

function compare(a: Decimal, b: Decimal): number {
  const { digits } = minus(a, b)
  return digits < 0n ? -1 : digits > 0n ? 1 : 0
}

function larger(a: Decimal, b: Decimal): Decimal {
  return compare(a, b) < 0 ? b : a
}

function isWhole({ digits, scale }: Decimal): boolean {
  return digits % 10n ** BigInt(scale) === 0n
}

function textOf({ digits, scale }: Decimal): string {
  const text = `${digits < 0n ? -digits : digits}`.padStart(scale + 1, '0')
  const behind = scale === 0 ? '' : text.slice(-scale).replace(/0+$/, '')
  const whole = scale === 0 ? text : text.slice(0, -scale)
  const all = `${digits < 0n ? '-' : ''}${whole}${behind === '' ? '' : `.${behind}`}`
  return all.length > 40 ? `${all.slice(0, 40)}…` : all
}
