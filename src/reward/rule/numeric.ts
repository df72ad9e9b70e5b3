import {
  compare,
  type Decimal,
  keepsDigits,
  longestNumber,
  isWhole,
  larger,
  magnitude,
  minus,
  read,
  textOf,
  times,
} from './decimal.ts'
import { quote, type TextRule, tooLong, verdictOf } from './rule.ts'

/** How far from gold a number may be: the larger of both bounds counts. Default: equal. */
export interface Tolerance {
  readonly absolute?: number
  /** Fraction of the gold's magnitude. */
  readonly relative?: number
}

/**
 * Reads one decimal number: sign, thousands commas in groups of three, exponent, a trailing percent sign (divided by
 * 100). Null for anything else: `1,2` , `0x10`, `1 2`, the empty text.
 */
export function parseNumber(text: string): number | null {
  return read(text)?.value ?? null
}

export function numeric(gold: number | string, tolerance: Tolerance = {}): TextRule {
  if (typeof gold === 'number' && Number.isFinite(gold) && !keepsDigits(gold))
    throw new RangeError(`JavaScript keeps 15 digits of a number as large as ${gold}: give the gold as text.`)
  const wanted = read(String(gold))
  if (wanted === null) throw new RangeError(`The gold ${quote(String(gold))} is not a number.`)
  const bound = larger(decimalOf(tolerance.absolute), times(decimalOf(tolerance.relative), wanted.exact))
  // What a double prints as stands for the double.
  const printed = read(String(wanted.value))?.exact
  const isDouble = !isWhole(wanted.exact) && printed !== undefined && compare(printed, wanted.exact) === 0
  return (answer) => {
    if (answer.trim().length > longestNumber) return tooLong(answer, longestNumber)
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

function decimalOf(bound: number | undefined): Decimal {
  const found = bound === undefined ? read('0') : read(String(bound))
  if (found === null || found.exact.digits < 0n)
    throw new RangeError(`The tolerance ${bound} is not a number from 0 on.`)
  return found.exact
}
