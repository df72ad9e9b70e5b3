import { quote, type Rule, verdictOf } from './rule.ts'

/** How far from gold a number may be: the larger of both bounds counts. Default: equal. */
export interface Tolerance {
  readonly absolute?: number
  /** Fraction of the gold's magnitude. */
  readonly relative?: number
}

const numberPattern = /^[+-]?(?:\d+(?:,\d{3})*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/

/**
 * Reads one decimal number: sign, thousands commas in groups of three, exponent, a trailing percent sign (divided by
 * 100). Null for anything else: `1,2` , `0x10`, `1 2`, the empty text.
 */
export function parseNumber(text: string): number | null {
  const trimmed = text.trim()
  const percent = trimmed.endsWith('%')
  const body = percent ? trimmed.slice(0, -1).trim() : trimmed
  if (!numberPattern.test(body)) return null
  const value = Number(body.replaceAll(',', ''))
  if (!Number.isFinite(value)) return null
  return percent ? value / 100 : value
}

/** 1 when the answer is one number within tolerance of gold. Integers beyond 2^53 are compared by their digits. */
export function numeric(gold: number | string, tolerance: Tolerance = {}): Rule {
  const goldText = String(gold)
  const wanted = parseNumber(goldText)
  if (wanted === null) throw new RangeError(`The gold ${quote(goldText)} is not a number.`)
  const bound = Math.max(tolerance.absolute ?? 0, (tolerance.relative ?? 0) * Math.abs(wanted))
  return (answer) => {
    const given = parseNumber(answer)
    if (given === null) return verdictOf(false, `${quote(answer)} is not a number`)
    const bigGold = bigInteger(goldText)
    const bigGiven = bigInteger(answer)
    if (bound === 0 && bigGold !== null && bigGiven !== null) {
      return verdictOf(bigGold === bigGiven, `${bigGiven} against ${bigGold}`)
    }
    const distance = Math.abs(given - wanted)
    return verdictOf(distance <= bound, `${given} is ${distance} from ${wanted}, allowed ${bound}`)
  }
}

function bigInteger(text: string): bigint | null {
  const plain = text.trim().replaceAll(',', '')
  return /^[+-]?\d+$/.test(plain) ? BigInt(plain.replace(/^\+/, '')) : null
}
