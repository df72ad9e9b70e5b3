import { quote, type Rule, verdictOf } from '../rule.ts'
import { type Collection, collectionOf } from './collection.ts'
import { sameEquation, sameNumber } from './compare.ts'
import { greek } from './names.ts'
import { Effort, TooCostly } from './rational.ts'
import { canonical, isDate, isWords, lastBoxed, partsOf, undressed, unwrapped } from './text.ts'

/** Longest answer that is looked at, in UTF-16 units: what is longer is no answer but a text. */
const longest = 1000

/**
 * 1 when an answer means what gold means: fractions by their digits, roots and other numbers to 60 digits, expressions with
 * letters at ten points, tuples, intervals and matrices in order, sets, unions, bare lists and `\pm` in any order. Reads LaTeX
 * and plain text; of an answer with `\boxed{…}` the last box counts.
 *
 * A unit may be left off, another unit is another answer; `50\%` is 0.5, and 50 where it is asked for in percent; `25_8` is not 25. A rounded
 * decimal is not the fraction or root that it was rounded from, unless it is all that a double holds. Words are compared
 * as words, case apart. Infinity is itself only. What cannot be read, is no number, or would cost too much to compute equals
 * the same text only. Throws `RangeError` for an empty gold.
 */
export function math(gold: string): Rule {
  const wanted = undressed(lastBoxed(gold) ?? gold)
  if (wanted === '') throw new RangeError(`The gold ${quote(gold)} is empty.`)
  return (answer) => {
    const given = lastBoxed(answer) ?? answer
    if (given.length > longest) return verdictOf(false, `an answer of ${given.length} characters`)
    const equal = isSame(wanted, undressed(given))
    return verdictOf(equal, `${quote(given)} ${equal ? 'is' : 'is not'} ${quote(gold)}`)
  }
}

function isSame(gold: string, given: string): boolean {
  try {
    return same(gold, given, new Effort())
  } catch (error) {
    if (error instanceof TooCostly) return false
    throw error
  }
}

function same(gold: string, given: string, effort: Effort): boolean {
  effort.spend(1)
  if (canonical(gold) === canonical(given)) return true
  const [a, b] = [infinityOf(gold), infinityOf(given)]
  if (a !== null || b !== null) return a === b
  if ([gold, given].some((text) => isWords(text) || isDate(text))) return false
  return (
    sameCollection(gold, given, effort) ??
    sameRelation(gold, given, effort) ??
    sameEquality(gold, given, effort) ??
    sameNumber(gold, given, effort)
  )
}

/** The sign of a bare infinity; null for anything else, sums with one as well. */
function infinityOf(text: string): '+' | '-' | null {
  const found = /^([+-]?)\s*(?:\\infty|inf|infinity)$/i.exec(unwrapped(text))
  return found === null ? null : found[1] === '-' ? '-' : '+'
}

/** Null where neither is one. */
function sameCollection(gold: string, given: string, effort: Effort): boolean | null {
  const [a, b] = [gold, given].map((text) => withoutRepeats(collectionOf(afterIn(text)), effort))
  if (a == null && b == null) return null
  return a != null && b != null && a.kind === b.kind && a.items.length === b.items.length && sameItems(a, b, effort)
}

/** Of `x \in [0, 1]` the interval. */
function afterIn(text: string): string {
  return /^[A-Za-z]\s*\\in(?![A-Za-z])(.*)$/s.exec(text)?.[1]?.trim() ?? withoutLeft(text)
}

/** Of `x = \pm 3` the right side: the letter says nothing of a collection. */
function withoutLeft(text: string): string {
  const right = /^[A-Za-z]\s*=\s*((?:\\pm|\\\{|[([]).*)$/s.exec(text)?.[1] ?? text
  return right.includes('=') ? text : right
}

/** A set in braces is the same however often it names one thing; a list, as of roots, is not. */
function withoutRepeats(collection: Collection | null, effort: Effort): Collection | null {
  if (collection?.braced !== true) return collection
  const items = collection.items.filter(
    (item, at) => !collection.items.slice(0, at).some((other) => same(item, other, effort)),
  )
  return { ...collection, items }
}

function sameItems({ kind, items }: Collection, other: Collection, effort: Effort): boolean {
  const isOrdered = (kind !== 'set' && kind !== 'union') || namesOneSide(items, other.items)
  if (isOrdered) return items.every((item, i) => same(item, other.items[i] ?? '', effort))
  const left = [...other.items]
  return items.every((item) => {
    const at = left.findIndex((one) => same(item, one, effort))
    if (at >= 0) left.splice(at, 1)
    return at >= 0
  })
}

/** Of `x = 1, y = 2` and `2, 1` only one says which is which: it says so by its order. */
function namesOneSide(...lists: readonly (readonly string[])[]): boolean {
  const names = lists.map((items) => new Set(items.map((item) => /^([^=]*?)\s*=/.exec(item)?.[1] ?? '')).size)
  return Math.min(...names) === 1 && Math.max(...names) > 1 && lists.some((items) => !items.join('').includes('='))
}

const relation = /\\(?:leq?(?:slant)?|geq?(?:slant)?|neq?|lt|gt)(?![A-Za-z])|<=|>=|!=|<|>/
const flips: Readonly<Record<string, string>> = { '<': '>', '>': '<', '<=': '>=', '>=': '<=', '!=': '!=' }

/** `3 < x` is `x > 3`. Null where neither is a relation. */
function sameRelation(gold: string, given: string, effort: Effort): boolean | null {
  const [a, b] = [relationsOf(gold), relationsOf(given)]
  if (a.length === 0 && b.length === 0) return null
  if (a.length === 0 || a.length !== b.length) return false
  const [left, right] = [partsOf(gold, relation), partsOf(given, relation)]
  if (left.length !== a.length + 1 || right.length !== b.length + 1) return false
  const holds = (signs: readonly string[], sides: readonly string[]) =>
    a.every((sign, i) => sign === signs[i]) && left.every((side, i) => same(side, sides[i] ?? '', effort))
  return (
    holds(b, right) ||
    holds(
      b.toReversed().map((sign) => flips[sign] ?? sign),
      right.toReversed(),
    )
  )
}

function relationsOf(text: string): readonly string[] {
  return [...text.matchAll(new RegExp(relation.source, 'g'))].map(([found]) => {
    if (/^\\n|!=/.test(found)) return '!='
    const sign = /^\\l|^</.test(found) ? '<' : '>'
    return /e|=/.test(found) ? `${sign}=` : sign
  })
}

/** Of `x = 3` the 3; other equations by what they say. Null where neither has a sign of equality. */
function sameEquality(gold: string, given: string, effort: Effort): boolean | null {
  const [a, b] = [gold.split('='), given.split('=')]
  if (a.length === 1 && b.length === 1) return null
  if (a.length > 2 || b.length > 2) return false
  const [goldLeft, goldRight = null] = a.map((side) => side.trim())
  const [givenLeft, givenRight = null] = b.map((side) => side.trim())
  if (goldRight !== null && givenRight !== null) return sameEquation(a, b, effort)
  const name = (goldRight === null ? givenLeft : goldLeft) ?? ''
  const named = /^(?:[A-Za-z]|\\([a-z]+))(?:_\{?\w+\}?)?(?:\([A-Za-z]\))?$/.exec(name)
  if (named === null || (named[1] !== undefined && !greek.has(named[1]))) return false
  return same(goldRight ?? goldLeft ?? '', givenRight ?? givenLeft ?? '', effort)
}
