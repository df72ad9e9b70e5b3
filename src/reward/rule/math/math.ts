import { quote, type Rule, verdictOf } from '../rule.ts'
import { lastBoxed, plainExpression, undressed } from './latex.ts'

/** Longest answer that is looked at, in UTF-16 units: what is longer is no answer but a text. */
const longest = 1000
const relative = 1e-9
/** Where expressions with letters are compared. Odd enough that nobody's mistake is right at all of them. */
const points = [0.7316, 1.4271, 2.9183, -0.6129, -1.8377, 3.3941, 0.1237, -2.7719] as const

/**
 * 1 when an answer means what gold means: numbers, fractions, roots and expressions with letters (compared at eight points),
 * tuples and intervals in order, sets and bare lists in any order. Reads LaTeX and plain text; of an answer with `\boxed{…}`
 * the last box counts. `50\%` is 0.5. What cannot be read is compared as text. Expressions are evaluated by mathjs, which
 * sees numbers, letters, signs and the functions of a list only. Throws `RangeError` for an empty gold.
 */
export async function math(gold: string): Promise<Rule> {
  const evaluate = await evaluator()
  const wanted = undressed(lastBoxed(gold) ?? gold)
  if (wanted === '') throw new RangeError(`The gold ${quote(gold)} is empty.`)
  return (answer) => {
    const given = lastBoxed(answer) ?? answer
    if (given.length > longest) return verdictOf(false, `an answer of ${given.length} characters`)
    const equal = same(wanted, undressed(given), evaluate)
    return verdictOf(equal, `${quote(given)} ${equal ? 'is' : 'is not'} ${quote(gold)}`)
  }
}

type Evaluate = (expression: string, letters: Readonly<Record<string, number>>) => number

async function evaluator(): Promise<Evaluate> {
  // Loaded for who compares mathematics: it is large.
  const { parse } = await import('mathjs/number')
  return (expression, letters) => {
    const value: unknown = parse(expression)
      .compile()
      .evaluate({ ...letters })
    return typeof value === 'number' ? value : Number.NaN
  }
}

function same(gold: string, given: string, evaluate: Evaluate): boolean {
  if (compact(gold) === compact(given)) return true
  const [a, b] = [collectionOf(gold), collectionOf(given)]
  if (a !== null && b !== null) {
    return a.kind === b.kind && a.items.length === b.items.length && sameItems(a, b.items, evaluate)
  }
  if (a !== null || b !== null) return false
  return sameExpression(rightSide(gold), rightSide(given), evaluate)
}

function compact(text: string): string {
  return text.replaceAll(/\s+/g, '').toLowerCase()
}

interface Collection {
  /** `set`: any order. Else the brackets, which say whether ends of an interval belong to it. */
  readonly kind: string
  readonly items: readonly string[]
}

/** A set, tuple, interval or bare list; null for one expression. */
function collectionOf(text: string): Collection | null {
  if (/^[\d,.]+$/.test(text) && /^\d{1,3}(?:,\d{3})+(?:\.\d+)?$/.test(text)) return null
  const braced = /^\\\{(.*)\\\}$/s.exec(text)
  if (braced !== null) return { kind: 'set', items: itemsOf(braced[1] ?? '') }
  const bracketed = /^([([])(.*)([)\]])$/s.exec(text)
  const inner = bracketed === null ? [] : itemsOf(bracketed[2] ?? '')
  if (bracketed !== null && inner.length > 1) return { kind: `${bracketed[1]}${bracketed[3]}`, items: inner }
  const bare = itemsOf(text)
  return bare.length > 1 ? { kind: 'set', items: bare } : null
}

/** Parts between commas outside of all brackets. */
function itemsOf(text: string): readonly string[] {
  const items: string[] = []
  let depth = 0
  let start = 0
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at] ?? ''
    if ('([{'.includes(sign)) depth += 1
    else if (')]}'.includes(sign)) depth -= 1
    else if (sign === ',' && depth === 0) {
      items.push(text.slice(start, at))
      start = at + 1
    }
  }
  return [...items, text.slice(start)].map((item) => item.trim()).filter((item) => item !== '')
}

function sameItems({ kind, items }: Collection, given: readonly string[], evaluate: Evaluate): boolean {
  if (kind !== 'set') return items.every((item, i) => same(item, given[i] ?? '', evaluate))
  const left = [...given]
  return items.every((item) => {
    const at = left.findIndex((other) => same(item, other, evaluate))
    if (at >= 0) left.splice(at, 1)
    return at >= 0
  })
}

/** Of `x = 3` the 3. */
function rightSide(text: string): string {
  return /^\s*[A-Za-z](?:\([A-Za-z]\))?\s*=([^=]*)$/s.exec(text)?.[1]?.trim() ?? text
}

function sameExpression(gold: string, given: string, evaluate: Evaluate): boolean {
  const [a, b] = [plainExpression(gold), plainExpression(given)]
  if (a === null || b === null) return false
  if (/^-?\d+$/.test(a) && /^-?\d+$/.test(b)) return BigInt(a) === BigInt(b)
  const letters = [...new Set(`${a} ${b}`.match(/(?<![A-Za-z])[A-Za-z](?![A-Za-z])/g))].filter((one) => one !== 'e')
  try {
    const compared = (letters.length === 0 ? [0] : points.map((_, i) => i)).map((i) => {
      const scope = Object.fromEntries(letters.map((one, k) => [one, points[(i + 3 * k) % points.length] ?? 1]))
      return [evaluate(a, scope), evaluate(b, scope)] as const
    })
    // Outside of the domain of one of them nothing can be said.
    const told = compared.filter(([x, y]) => !Number.isNaN(x) && !Number.isNaN(y))
    return told.length >= Math.min(3, compared.length) && told.every(([x, y]) => close(x, y))
  } catch {
    return false
  }
}

function close(x: number, y: number): boolean {
  return x === y || Math.abs(x - y) <= relative * Math.max(Math.abs(x), Math.abs(y), 1e-3)
}
