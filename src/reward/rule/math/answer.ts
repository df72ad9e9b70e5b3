import type { Decimal, Fraction } from './field.ts'
import { greek } from './names.ts'
import { expressionOf, type Reading } from './parse.ts'
import { NotUnderstood } from './rational.ts'
import { allReals, both, either, firstOnly, interval, least, merged, most, type Reals } from './reals.ts'
import { canonical, enclosed, isDate, isWords, partsOf, unwrappedLetters } from './text.ts'
import { counted } from './unit.ts'

/** What a text says, understood whole. */
export type Answer =
  | { readonly kind: 'value'; readonly value: Fraction; readonly unit: string; readonly body: string }
  | { readonly kind: 'infinity'; readonly sign: string }
  /** In order; the brackets say whether it may be an interval, and of which ends. */
  | { readonly kind: 'tuple'; readonly brackets: string; readonly items: readonly Answer[] }
  /** In any order. `word` is the `and` or `or` between them. */
  | { readonly kind: 'list'; readonly braced: boolean; readonly word: string; readonly items: readonly Answer[] }
  | { readonly kind: 'union'; readonly items: readonly Answer[] }
  /** Real numbers, and of which variable; '' for none. */
  | { readonly kind: 'reals'; readonly name: string; readonly reals: Reals }
  /** `difference` has this sign beside 0. */
  | { readonly kind: 'relation'; readonly sign: string; readonly difference: Fraction }
  /** `name` is what alone stands on one side, `value` what on the other. */
  | {
      readonly kind: 'equation'
      readonly name: string
      readonly value: Answer | null
      readonly difference: Fraction | null
    }
  | { readonly kind: 'matrix'; readonly bars: string; readonly rows: readonly (readonly Fraction[])[] }
  | { readonly kind: 'cases'; readonly rows: readonly (readonly Answer[])[] }
  | { readonly kind: 'residue'; readonly value: Fraction; readonly modulus: Fraction }
  | { readonly kind: 'digits'; readonly digits: string; readonly base: string }
  | { readonly kind: 'text'; readonly text: string }

/** What one side of a comparison is read with. */
export interface Side extends Reading {
  /** Whether a single letter behind a number may be a unit. */
  readonly units: boolean
}

/** Reads a text whole. Throws `NotUnderstood` where any part of it is unknown. */
export function read(text: string, side: Side): Answer {
  if (isWords(text) || isDate(text)) throw new NotUnderstood()
  return (
    casesOf(text, side) ??
    combinedOf(text, side) ??
    relationOf(text, side) ??
    residueOf(text, side) ??
    equationOf(text, side) ??
    realsOf(text, side) ??
    matrixOf(text, side) ??
    collectionOf(text, side) ??
    valueOf(text, side)
  )
}

function valueOf(text: string, side: Side): Answer {
  const infinite = /^([+-]?)\s*(?:\\infty|inf|infinity)$/i.exec(unwrappedLetters(text).trim())
  if (infinite !== null) return { kind: 'infinity', sign: infinite[1] === '-' ? '-' : '+' }
  const based = /^([\dA-F]+)_\s*\{?\s*\(?\s*(\d{1,2})\s*\)?\s*\}?$/.exec(unwrappedLetters(text))
  if (based !== null && !/^[A-F]$/.test(based[1] ?? ''))
    return { kind: 'digits', digits: based[1] ?? '', base: based[2] ?? '' }
  const { body, unit } = counted(text, side.units)
  const plain = unwrappedLetters(body).trim()
  return { kind: 'value', value: expressionOf(plain, side), unit, body: plain }
}

const logic = /\\text\s*\{\s*(?:and|or),?\s*\}|\s(?:and|or)\s|\\(?:land|lor|wedge|vee)(?![A-Za-z])/
const relation = /\\(?:leq?(?:slant)?|geq?(?:slant)?|neq?|lt|gt)(?![A-Za-z])|<=|>=|!=|<|>/
const flips: Readonly<Record<string, string>> = { '>': '<', '>=': '<=' }

/** Relations with `and` or `or` between them: of one variable the numbers for which they hold. */
function combinedOf(text: string, side: Side): Answer | null {
  const parts = partsOf(text, logic)
  if (parts.length < 2 || !parts.every((part) => relation.test(part) || /\\in(?![A-Za-z])/.test(part))) return null
  const word = wordOf(text, parts.length)
  if (word === '') throw new NotUnderstood()
  return together(
    parts.map((part) => read(part, side)),
    word === 'or' ? either : both,
  )
}

/** Of sets of numbers, all of one variable, the numbers that stay. */
function together(sets: readonly Answer[], keeps: typeof both): Answer {
  return sets.reduce((a, b) => {
    if (a.kind !== 'reals' || b.kind !== 'reals' || a.name !== b.name) throw new NotUnderstood()
    return { ...a, reals: merged(a.reals, b.reals, keeps) }
  })
}

/** The one word between all parts; '' for none, or where they differ. */
function wordOf(text: string, parts: number): string {
  const found = [...text.matchAll(new RegExp(logic.source, 'g'))].map(([sign]) =>
    /and|wedge/.test(sign) ? 'and' : 'or',
  )
  return found.length > 0 && (found.length === parts - 1 || parts > 2) && new Set(found).size === 1
    ? (found[0] ?? '')
    : ''
}

/** `1 < x \le 2` as numbers, or as a relation of more than one letter. */
function relationOf(text: string, side: Side): Answer | null {
  const signs = [...text.matchAll(new RegExp(relation.source, 'g'))].map(([found]) => signOf(found))
  const sides = partsOf(text, relation)
  if (signs.length === 0 || sides.length !== signs.length + 1) return null
  if (partsOf(text, /,|;/).length > 1) return null
  const values = sides.map((one) => expressionOf(unwrappedLetters(one).trim(), side))
  const all = signs.map((sign, i) => {
    const [left, right] = [values[i], values[i + 1]]
    if (left === undefined || right === undefined) throw new NotUnderstood()
    return single(sign, side.field.difference(left, right), side)
  })
  return together(all, both)
}

function signOf(found: string): string {
  if (/^\\n|!=/.test(found)) return '!='
  return `${/^\\l|^</.test(found) ? '<' : '>'}${/e|=/.test(found) ? '=' : ''}`
}

function single(sign: string, difference: Fraction, side: Side): Answer {
  const flipped = flips[sign]
  if (flipped !== undefined) return single(flipped, side.field.negative(difference), side)
  const solved = side.field.solved(difference)
  if (solved === null) return { kind: 'relation', sign, difference }
  const { name, at } = solved
  const has = sign === '<='
  if (sign === '!=') return { kind: 'reals', name, reals: merged(allReals, interval(at, at, true, true), firstOnly) }
  return {
    kind: 'reals',
    name,
    reals: solved.sign < 0 ? interval(at, most, has, false) : interval(least, at, false, has),
  }
}

/** `3 \pmod 7`, `x \equiv 3 \pmod 7`. */
function residueOf(text: string, side: Side): Answer | null {
  const found =
    /^(?:[A-Za-z]\s*(?:\\equiv|=)\s*)?(.*?)\s*\(?\s*\\(?:pmod|bmod|mod)(?![A-Za-z])\s*(\{[^{}]*\}|[^\s{}()]+)\s*\)?$/s.exec(
      text,
    )
  if (found === null) return null
  const [value, modulus] = [expressionOf(found[1] ?? '', side), expressionOf(found[2] ?? '', side)]
  return { kind: 'residue', value, modulus }
}

/** `x = 3`, `y = 2x + 3`, `x^2 + y^2 = 1`, `(x, y) = (1, 2)`. */
function equationOf(text: string, side: Side): Answer | null {
  const sides = partsOf(text, /=/)
  if (sides.length !== 2 || !text.includes('=') || partsOf(text, /,|;/).length > 1 || partsOf(text, logic).length > 1)
    return null
  const [left = '', right = ''] = sides
  const name = nameOf(left) ?? nameOf(right) ?? ''
  const other = nameOf(left) === null ? left : right
  // `x = 2x` says nothing of x.
  const isSaid =
    name !== '' && !(/^[A-Za-z]$/.test(name) && new RegExp(`(?<![A-Za-z\\\\])${name}(?![A-Za-z(_])`).test(other))
  const value = isSaid ? attempt(() => read(other, side)) : null
  const difference = attempt(() => side.field.difference(expressionOf(left, side), expressionOf(right, side)))
  if (value === null && difference === null) throw new NotUnderstood()
  if (difference !== null && side.field.isZero(difference)) throw new NotUnderstood()
  return { kind: 'equation', name: isSaid ? name.replaceAll(/\s/g, '') : '', value, difference }
}

/** A variable, a function of one, or a tuple of variables. */
function nameOf(side: string): string | null {
  const found = /^(?:[A-Za-z]|\\([A-Za-z]+))(?:_\{?\w+\}?)?'*(?:\(\s*[A-Za-z]\s*(?:,\s*[A-Za-z]\s*)*\))?$/.exec(side)
  if (found !== null) return found[1] === undefined || greek.has(found[1]) ? side : null
  return /^\(\s*[A-Za-z]\s*(?:,\s*[A-Za-z]\s*)+\)$/.test(side) ? side : null
}

export function attempt<T>(what: () => T): T | null {
  try {
    return what()
  } catch (error) {
    if (error instanceof NotUnderstood) return null
    throw error
  }
}

const merges = [
  [/\\(?:setminus|backslash)(?![A-Za-z])/, firstOnly],
  [/\\cup(?![A-Za-z])/, either],
  [/\\cap(?![A-Za-z])/, both],
] as const

/** `x \in …`, unions, `\mathbb{R} \setminus \{2\}`: of intervals with numbers as ends what they hold together. */
function realsOf(text: string, side: Side): Answer | null {
  const within = /^([A-Za-z])\s*\\in(?![A-Za-z])(.*)$/s.exec(text)
  if (within !== null) {
    const inner = read((within[2] ?? '').trim(), side)
    const reals = numbersOf(inner, side)
    return reals === null ? inner : { kind: 'reals', name: within[1] ?? '', reals }
  }
  if (/^(?:\\mathbb\s*\{?\s*R\s*\}?|\\R|\\Reals)$/.test(text)) return { kind: 'reals', name: '', reals: allReals }
  if (text === '\\emptyset') return { kind: 'reals', name: '', reals: [] }
  for (const [sign, keeps] of merges) {
    const parts = partsOf(text, sign)
    if (parts.length < 2 || (keeps === firstOnly && parts.length > 2)) continue
    const items = parts.map((part) => read(part, side))
    const sets = items.map((item) => numbersOf(item, side)).filter((one) => one !== null)
    if (sets.length === items.length)
      return { kind: 'reals', name: '', reals: sets.reduce((a, b) => merged(a, b, keeps)) }
    if (keeps !== either) throw new NotUnderstood()
    return { kind: 'union', items }
  }
  return null
}

/** An answer as real numbers; null for what is none: a point, a set with letters. */
export function numbersOf(answer: Answer, { field }: Reading): Reals | null {
  if (answer.kind === 'reals') return answer.reals
  if (answer.kind !== 'list' && answer.kind !== 'tuple') return null
  const ends = answer.items.map(endOf).filter((end) => end !== null)
  const [from, to] = ends
  if (from === undefined || ends.length !== answer.items.length) return null
  if (answer.kind === 'list') {
    if (!answer.braced || !ends.every((end) => end.isFinite())) return null
    return ends.reduce<Reals>((all, end) => merged(all, interval(end, end, true, true), either), [])
  }
  if (ends.length !== 2 || to === undefined || !from.lt(to) || !/^[([][)\]]$/.test(answer.brackets)) return null
  return interval(from, to, answer.brackets.startsWith('['), answer.brackets.endsWith(']'))

  function endOf(item: Answer): Decimal | null {
    if (item.kind === 'infinity') return item.sign === '-' ? least : most
    return item.kind === 'value' && item.unit === '' ? field.valueOf(item.value) : null
  }
}

const environment = /^(.*?)\\begin\s*\{([a-z]*matrix|array)\}\s*(?:\{[lcr|\s]*\})?(.*)\\end\s*\{\2\}$/s

/** A matrix, also one with a number before it. */
function matrixOf(text: string, side: Side): Answer | null {
  const found = environment.exec(enclosed(text, /^[([]/, /[)\]]$/)?.trim() ?? text)
  if (found === null) return null
  const [, before = '', name = '', inner = ''] = found
  // Bars make a determinant or a norm of it.
  const bars = /^[vV]/.exec(name)?.[0] ?? ''
  if (bars !== '' && before.trim() !== '') throw new NotUnderstood()
  const factor =
    before.trim() === ''
      ? null
      : expressionOf(/^[+-]$/.test(before.trim()) ? `${before}1` : before.replace(/\\cdot\s*$/, ''), side)
  const rows = tableOf(inner).map((cells) =>
    cells.map((cell) => {
      const value = expressionOf(unwrappedLetters(cell), side)
      return factor === null ? value : side.field.product(factor, value)
    }),
  )
  return { kind: 'matrix', bars, rows }
}

function tableOf(inner: string): readonly (readonly string[])[] {
  return inner
    .split(/\\\\(?:\s*\[[^\]]*\])?|\\cr(?![A-Za-z])/)
    .map((row) => row.split('&').map((cell) => cell.trim()))
    .filter((cells) => cells.some((cell) => cell !== ''))
}

/** Cases in any order, each with its condition. */
function casesOf(text: string, side: Side): Answer | null {
  const left = /^([A-Za-z](?:\([A-Za-z]\))?)\s*=\s*(?=\\begin)/.exec(text)?.[0] ?? ''
  const found = /^\\begin\s*\{cases\}(.*)\\end\s*\{cases\}$/s.exec(text.slice(left.length))
  if (found === null) return null
  const rows = tableOf(found[1] ?? '').map((cells) => {
    const [value, condition, more] = cells.map((cell) => cell.replace(/[,;.]$/, '').trim())
    if (value === undefined || condition === undefined || more !== undefined) throw new NotUnderstood()
    const said = condition.replace(/^(?:\\text\s*\{\s*(?:if|for|when)\s*\}|(?:if|for|when)\s)/, '').trim()
    return [read(value, side), attempt(() => read(said, side)) ?? ({ kind: 'text', text: canonical(said) } as const)]
  })
  return { kind: 'cases', rows }
}

const listed = new RegExp(`,\\s*(?:and|or)\\s|,|;|${logic.source}`)

/** A set, tuple, interval or bare list; null for one expression. `\pm` stands for two of the items. */
function collectionOf(text: string, side: Side): Answer | null {
  const braced = enclosed(text, /^\\\{/, /\\\}$/)
  if (braced !== null) return list(braced, true, side)
  const bracketed = enclosed(text, /^[()[\]]/, /[()[\]]$/)
  const inner = bracketed === null ? [] : partsOf(bracketed, /,|;/)
  if (inner.length > 1)
    return { kind: 'tuple', brackets: `${text[0]}${text.at(-1)}`, items: inner.map((item) => read(item, side)) }
  return list(text, false, side)
}

function list(text: string, braced: boolean, side: Side): Answer | null {
  const parts = partsOf(text, listed)
  const texts = parts.flatMap(bothSigns)
  if (texts.length < 2 && !braced) return null
  const items = texts.map((item) => read(item, side))
  return { kind: 'list', braced, word: parts.length > 1 ? wordOf(text, parts.length) : '', items }
}

/**
 * `a \pm b` as `a + b` and `a - b`. Several signs are free of one another, and so four numbers or more, unless a `\mp` ties
 * them together.
 */
function bothSigns(text: string): readonly string[] {
  const signs: readonly string[] = text.match(/\\(?:pm|mp)(?![A-Za-z])/g) ?? []
  if (signs.length === 0 || signs.length > 4) return [text]
  const ways = signs.includes('\\mp')
    ? [0, 2 ** signs.length - 1]
    : Array.from({ length: 2 ** signs.length }, (_, i) => i)
  return ways.map((way) => {
    let at = -1
    return text.replaceAll(/\\(pm|mp)(?![A-Za-z])/g, (_, name) => {
      at += 1
      return ((way >> at) & 1) === (name === 'pm' ? 0 : 1) ? '+' : '-'
    })
  })
}
