import { partsOf } from './text.ts'

/** Several things in one answer. */
export interface Collection {
  /**
   * `set` (braces, or a list without brackets) and `union`: any order. Else in order: the two brackets, which say whether the
   * ends of an interval belong to it, or `matrix` with its shape.
   */
  readonly kind: string
  readonly items: readonly string[]
  /** Of a set: it stands in braces. */
  readonly braced?: true
}

const listed = /,|;|\\text\s*\{\s*(?:and|or),?\s*\}|\s(?:and|or)\s/
const environment = /^\\begin\s*\{([a-z]*matrix|array)\}\s*(?:\{[lcr|\s]*\})?(.*)\\end\s*\{\1\}$/s

/** A matrix, union, set, tuple, interval or bare list; null for one expression. `\pm` stands for two of the items. */
export function collectionOf(text: string): Collection | null {
  const matrix = matrixOf(text)
  if (matrix !== null) return matrix
  const united = partsOf(text, /\\cup(?![A-Za-z])/)
  if (united.length > 1) return { kind: 'union', items: united }
  const braced = enclosed(text, /^\\\{/, /\\\}$/)
  if (braced !== null) return { kind: 'set', items: itemsOf(braced), braced: true }
  const bracketed = enclosed(text, /^[([]/, /[)\]]$/)
  const inner = bracketed === null ? [] : partsOf(bracketed, /,|;/)
  if (inner.length > 1) {
    return { kind: `${text[0]}${text.at(-1)}`, items: inner }
  }
  const bare = itemsOf(text)
  return bare.length > 1 ? { kind: 'set', items: bare } : null
}

function itemsOf(text: string): readonly string[] {
  return partsOf(text, listed).flatMap(both)
}

/**
 * `a \pm b` as `a + b` and `a - b`. Several signs are free of one another, and so four numbers or more, unless a `\mp` ties
 * them together.
 */
function both(text: string): readonly string[] {
  const signs: readonly string[] = text.match(/\\(?:pm|mp)(?![A-Za-z])/g) ?? []
  if (signs.length === 0 || signs.length > 4) return [text]
  const ways = signs.includes('\\mp')
    ? [0, 2 ** signs.length - 1]
    : Array.from({ length: 2 ** signs.length }, (_, way) => way)
  return ways.map((way) => {
    let at = -1
    return text.replaceAll(/\\(pm|mp)(?![A-Za-z])/g, (_, name) => {
      at += 1
      return ((way >> at) & 1) === (name === 'pm' ? 0 : 1) ? '+' : '-'
    })
  })
}

function matrixOf(text: string): Collection | null {
  const found = environment.exec(enclosed(text, /^[([]/, /[)\]]$/)?.trim() ?? text)
  if (found === null) return null
  const name = found[1] ?? ''
  const rows = (found[2] ?? '')
    .split(/\\\\(?:\s*\[[^\]]*\])?|\\cr(?![A-Za-z])/)
    .map((row) => row.split('&').map((cell) => cell.trim()))
    .filter((cells) => cells.some((cell) => cell !== ''))
  // Bars make a determinant or a norm of it.
  const kind = /^[vV]/.test(name) ? name : 'matrix'
  return { kind: `${kind} ${rows.map((cells) => cells.length).join(' ')}`, items: rows.flat() }
}

/** What stands between two brackets that belong together and hold all of the text. */
function enclosed(text: string, open: RegExp, close: RegExp): string | null {
  const [first, last] = [open.exec(text)?.[0], close.exec(text)?.[0]]
  if (first === undefined || last === undefined || text.length < first.length + last.length) return null
  const inner = text.slice(first.length, -last.length)
  let depth = 0
  for (const sign of inner) {
    if ('([{'.includes(sign)) depth += 1
    else if (')]}'.includes(sign)) depth -= 1
    if (depth < 0) return null
  }
  return depth === 0 ? inner : null
}
