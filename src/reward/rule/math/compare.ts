import { type Expression, lettersOf } from './expression.ts'
import { parse } from './parse.ts'
import type { Effort, Rational } from './rational.ts'
import { unwrapped } from './text.ts'
import { type Counted, counted, sameUnit } from './unit.ts'
import { isZero, nearestDouble, neverEnds, ratio, sameValue, type Value, valueOf } from './value.ts'

/**
 * Where expressions with letters are compared: whole numbers for factorials and powers, of both signs and parities, and
 * fractions for roots.
 */
const points: readonly Rational[] = [
  [4n, 1n],
  [7n, 1n],
  [-3n, 1n],
  [11n, 7n],
  [-5n, 3n],
  [9n, 1n],
  [13n, 4n],
  [-8n, 1n],
  [2n, 5n],
  [6n, 1n],
].map(([num = 0n, den = 1n]) => ({ num, den }))
/** Where several letters are natural numbers at once, for binomials and factorials of their differences. */
const naturals = [12, 5, 9, 3, 8, 2, 11, 4, 7, 6].map(BigInt)
/** Points at which both must have a value before anything is said. */
const enough = 3

/** Whether two expressions are one value wherever both have one, with one unit or with a unit left off. */
export function sameNumber(gold: string, given: string, effort: Effort): boolean {
  const [whole, other] = [counted(gold), counted(given)]
  if (whole.unit === '' && other.unit === '') return sameExpression(gold, given, effort)
  if (!sameUnit(whole.unit, other.unit) || !mayCount(whole) || !mayCount(other)) return false
  if (!isBelowOne(whole, other, effort) && sameExpression(whole.body, other.body, effort)) return true
  // Of 50% and 0.5 only one has the sign.
  return whole.unit === '' || other.unit === '' ? sameExpression(gold, given, effort) : false
}

/** Whether one is a bare number below 1 and the other in percent: 0.25 and 1/4 are 25%, and so they are not 0.25%. */
function isBelowOne(gold: Counted, given: Counted, effort: Effort): boolean {
  const [percent, bare] = gold.unit === 'percent' ? [gold, given] : [given, gold]
  const of = percent.unit === 'percent' && bare.unit === '' ? parse(unwrapped(bare.body)) : null
  const value = of === null || lettersOf(of).length > 0 ? null : valueOf(of, new Map(), effort)
  return value !== null && !isZero(value) && Math.abs(nearestDouble(value)) < 1
}

/** Whether two equations say the same: left less right is the same but for a constant factor. */
export function sameEquation(gold: readonly string[], given: readonly string[], effort: Effort): boolean {
  const [a, b] = [difference(gold), difference(given)]
  if (a === null || b === null) return false
  let factor: Value | null = null
  let told = 0
  for (const [x, y] of valuesAtPoints(a, b, effort)) {
    if (isZero(x) && isZero(y)) continue
    const found = ratio(x, y, effort)
    if (found === null || isZero(found) || (factor !== null && !sameValue(factor, found))) return false
    factor = found
    told += 1
  }
  return told >= enough
}

/** A word that nobody knows as a unit counts things, so it stands behind a number. */
function mayCount({ body, known }: Counted): boolean {
  if (known) return true
  const of = parse(unwrapped(body))
  return of !== null && lettersOf(of).length === 0
}

function sameExpression(gold: string, given: string, effort: Effort): boolean {
  const [a, b] = [parse(unwrapped(gold)), parse(unwrapped(given))]
  if (a === null || b === null) return false
  let told = 0
  let asked = 0
  for (const [x, y] of valuesAtPoints(a, b, effort)) {
    asked += 1
    if (!sameValue(x, y) && !(printed(a, y) || printed(b, x))) return false
    told += 1
  }
  return told >= Math.min(enough, lettersOf(a).length + lettersOf(b).length === 0 ? 1 : enough) && asked > 0
}

/** The values of both wherever both have one; one pair where there are no letters. */
function* valuesAtPoints(a: Expression, b: Expression, effort: Effort): Generator<readonly [Value, Value]> {
  const letters = [...new Set([...lettersOf(a), ...lettersOf(b)])].toSorted()
  const count = letters.length === 0 ? 1 : letters.length === 1 ? points.length : points.length + naturals.length
  for (let i = 0; i < count; i += 1) {
    const scope = new Map(letters.map((letter, k) => [letter, i < points.length ? pointOf(i, k) : naturalOf(i, k)]))
    const [x, y] = [valueOf(a, scope, effort), valueOf(b, scope, effort)]
    if (x !== null && y !== null) yield [x, y]
  }
}

/** No two letters have the same value at a point. */
function pointOf(i: number, letter: number): Rational {
  const { num, den } = points[(i + 3 * letter) % points.length] ?? { num: 1n, den: 1n }
  return { num: num + den * 17n * BigInt(Math.floor(letter / points.length)), den }
}

function naturalOf(i: number, letter: number): Rational {
  const num = naturals[(i + 3 * letter) % naturals.length] ?? 1n
  return { num: num + 13n * BigInt(Math.floor(letter / naturals.length)), den: 1n }
}

function difference([left = '', right = '']: readonly string[]): Expression | null {
  const [a, b] = [parse(unwrapped(left)), parse(unwrapped(right))]
  return a === null || b === null ? null : { kind: 'sum', left: a, right: { kind: 'negative', of: b } }
}

/** Whether one side is a decimal number that a double of the other's value prints as: 0.3333333333333333 for a third. */
function printed(side: Expression, value: Value): boolean {
  const [number, sign] = side.kind === 'negative' ? [side.of, '-'] : [side, '']
  if (number.kind !== 'number' || !/^\d*\.\d+$/.test(number.text)) return false
  const digits = number.text.replace('.', '').replace(/^0+/, '')
  return digits.length >= 12 && neverEnds(value) && String(nearestDouble(value)) === `${sign}${number.text}`
}
