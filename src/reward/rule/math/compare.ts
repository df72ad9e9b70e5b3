import { type Answer, numbersOf } from './answer.ts'
import { type Field, type Fraction, sameDecimal } from './field.ts'
import type { Reading } from './parse.ts'
import { over, rational } from './rational.ts'
import type { Cut } from './reals.ts'

/** Whether an answer means what gold means. What is left off (a name, a unit, a base) is gold's, and may be no other. */
export function same(gold: Answer, given: Answer, by: Reading): boolean {
  if (gold.kind === 'equation' || given.kind === 'equation') return sameEquation(gold, given, by)
  if (gold.kind === 'list' || given.kind === 'list') return sameList(gold, given, by)
  if (gold.kind === 'reals' || given.kind === 'reals') return sameReals(gold, given, by)
  if (gold.kind === 'residue' || gold.kind === 'digits') return sameMarked(gold, given, by)
  if (gold.kind === 'value') return given.kind === 'value' && sameCounted(gold, given, by)
  if (gold.kind === 'union')
    return given.kind === 'union' && inAnyOrder(gold.items, given.items, (a, b) => same(a, b, by))
  if (gold.kind === 'tuple')
    return given.kind === 'tuple' && gold.brackets === given.brackets && inOrder(gold.items, given.items, by)
  if (gold.kind === 'infinity') return given.kind === 'infinity' && gold.sign === given.sign
  if (gold.kind === 'text') return given.kind === 'text' && gold.text === given.text
  if (gold.kind === 'relation') {
    if (given.kind !== 'relation' || gold.sign !== given.sign) return false
    return gold.sign === '!='
      ? by.field.proportional(gold.difference, given.difference)
      : positively(gold.difference, given.difference, by)
  }
  if (gold.kind === 'matrix') {
    if (given.kind !== 'matrix' || gold.bars !== given.bars) return false
    return pairwise(gold.rows, given.rows, (row, other) => pairwise(row, other, (a, b) => by.field.same(a, b)))
  }
  return given.kind === 'cases' && inAnyOrder(gold.rows, given.rows, (a, b) => inOrder(a, b, by))
}

function pairwise<T>(a: readonly T[], b: readonly T[], equal: (a: T, b: T) => boolean): boolean {
  return a.length === b.length && a.every((item, i) => equal(item, b[i] ?? item))
}

function inOrder(a: readonly Answer[], b: readonly Answer[], by: Reading): boolean {
  return pairwise(a, b, (item, other) => sameItem(item, other, by))
}

function inAnyOrder<T>(a: readonly T[], b: readonly T[], equal: (a: T, b: T) => boolean): boolean {
  const left = [...b]
  const isThere = (item: T) => {
    const at = left.findIndex((one) => equal(item, one))
    if (at >= 0) left.splice(at, 1)
    return at >= 0
  }
  return a.length === b.length && a.every(isThere)
}

/** Two differences that are one but for a positive rational factor. */
function positively(a: Fraction, b: Fraction, { field }: Reading): boolean {
  if (!field.proportional(a, b) || field.isZero(b)) return false
  const factor = field.valueOf(field.quotient(a, b)) ?? leading(a, b, field)
  return factor !== null && factor.gt(0)
}

/** `a` over `b`, if the letters cancel. */
function leading(a: Fraction, b: Fraction, field: Field): ReturnType<Field['valueOf']> {
  const [[key = '', first] = []] = a.num
  const second = b.num.get(key)
  if (first === undefined || second === undefined || a.den.size !== 1 || b.den.size !== 1) return null
  const ratio = over(first.coefficient, second.coefficient)
  return field.same(a, field.scaled(b, ratio)) ? field.valueOf(field.number(ratio)) : null
}

/** Of `x = 3` the 3, unless both name what they say it of; other equations up to a factor. */
function sameEquation(gold: Answer, given: Answer, by: Reading): boolean {
  if (gold.kind !== 'equation') {
    return given.kind === 'equation' && given.value !== null && same(gold, given.value, by)
  }
  if (given.kind !== 'equation') return gold.value !== null && same(gold.value, given, by)
  if (gold.name !== '' && gold.name === given.name && gold.value !== null && given.value !== null) {
    if (same(gold.value, given.value, by)) return true
  }
  if (gold.difference === null || given.difference === null) return false
  return by.field.proportional(gold.difference, given.difference)
}

function sameList(gold: Answer, given: Answer, by: Reading): boolean {
  if (gold.kind !== 'list' || given.kind !== 'list') {
    const [list, one] = gold.kind === 'list' ? [gold, given] : [given, gold]
    if (list.kind !== 'list') return false
    const [only, more] = withoutRepeats(list, by)
    if (only !== undefined && more === undefined && list.braced && one.kind === 'value') return same(only, one, by)
    return one.kind === 'reals' && sameReals(gold, given, by)
  }
  if (gold.word !== '' && given.word !== '' && gold.word !== given.word) return false
  const [a, b] = [withoutRepeats(gold, by), withoutRepeats(given, by)]
  return namesOneSide(a, b) ? inOrder(a, b, by) : inAnyOrder(a, b, (x, y) => sameItem(x, y, by))
}

/** A set in a set is not what it holds: `\{1, \{2\}\}` is not `\{1, 2\}`. */
function sameItem(a: Answer, b: Answer, by: Reading): boolean {
  return (a.kind === 'list') === (b.kind === 'list') && same(a, b, by)
}

/** A set in braces is the same however often it names one thing; a list, as of roots, is not. */
function withoutRepeats({ braced, items }: Extract<Answer, { kind: 'list' }>, by: Reading): readonly Answer[] {
  if (!braced) return items
  return items.filter((item, at) => !items.slice(0, at).some((other) => sameItem(item, other, by)))
}

/** Of `x = 1, y = 2` and `2, 1` only one says which is which: it says so by its order. */
function namesOneSide(...lists: readonly (readonly Answer[])[]): boolean {
  const names = lists.map((items) => new Set(items.map((item) => (item.kind === 'equation' ? item.name : ''))))
  const isBare = names.some((all) => all.size === 1 && all.has(''))
  return isBare && names.some((all) => all.size > 1)
}

function sameReals(gold: Answer, given: Answer, by: Reading): boolean {
  const [name, other] = [gold, given].map((one) => (one.kind === 'reals' ? one.name : ''))
  if (name !== '' && other !== '' && name !== other) return false
  const [a, b] = [numbersOf(gold, by), numbersOf(given, by)]
  const equal = (x: Cut, y: Cut) => x.behind === y.behind && sameDecimal(x.at, y.at)
  return a !== null && b !== null && pairwise(a, b, equal)
}

/** A base or a modulus may be left off where gold has one, and not be put on. */
function sameMarked(gold: Extract<Answer, { kind: 'residue' | 'digits' }>, given: Answer, by: Reading): boolean {
  if (gold.kind === 'digits') {
    if (given.kind === 'digits') return gold.digits === given.digits && gold.base === given.base
    return given.kind === 'value' && given.unit === '' && given.body === gold.digits
  }
  if (given.kind === 'value') return given.unit === '' && by.field.same(gold.value, given.value)
  if (given.kind !== 'residue' || !by.field.same(gold.modulus, given.modulus)) return false
  const apart = by.field.rationalOf(by.field.quotient(by.field.difference(gold.value, given.value), gold.modulus))
  return apart !== null && apart.den === 1n
}

/** Single letters that may also multiply a number, as in 5K, are units only where gold has them. */
const mayScale = /^[A-Zbk]$/

type Value = Extract<Answer, { kind: 'value' }>

function sameCounted(gold: Value, given: Value, by: Reading): boolean {
  if (gold.unit === given.unit) return sameValue(gold, given, by)
  if (gold.unit !== '' && given.unit !== '') return false
  if (gold.unit === '' && mayScale.test(given.unit)) return false
  if (gold.unit !== 'percent' && given.unit !== 'percent') return sameValue(gold, given, by)
  const [percent, bare] = gold.unit === 'percent' ? [gold, given] : [given, gold]
  const share = by.field.scaled(percent.value, rational(1n, 100n))
  if (by.field.same(share, bare.value)) return true
  // A gold in percent asks for percent, so 25 is 25%; 0.25 is 25% too, and so it is not 0.25%.
  const size = by.field.valueOf(bare.value)?.abs()
  const asked = percent === gold && (size === undefined || size.isZero() || size.gte(1))
  return asked && by.field.same(percent.value, bare.value)
}

function sameValue(gold: Value, given: Value, by: Reading): boolean {
  return by.field.same(gold.value, given.value) || printed(gold, given, by) || printed(given, gold, by)
}

/** Whether one side is a decimal number that a double of the other's value prints as: 0.3333333333333333 for a third. */
function printed(side: Value, of: Value, { field }: Reading): boolean {
  const digits = /^-?(\d*)\.(\d+)$/.exec(side.body)
  if (digits === null || `${digits[1]}${digits[2]}`.replace(/^0+/, '').length < 12) return false
  let den = field.rationalOf(of.value)?.den
  for (const prime of [2n, 5n]) while (den !== undefined && den % prime === 0n) den /= prime
  return den !== 1n && String(field.valueOf(of.value)?.toNumber()) === side.body
}
