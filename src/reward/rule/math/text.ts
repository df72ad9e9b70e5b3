import { functionNames, signs, tableOf } from './names.ts'

const sign = new RegExp(`[${Object.keys(signs).join('')}]`, 'g')
/** Commands that change how something looks and not what it is. */
const dressing =
  /\\(?:left|right|displaystyle|textstyle|scriptstyle|limits|quad|qquad|big|Big|bigg|Bigg|bigl|bigr|Bigl|Bigr|mathopen|mathclose)(?![A-Za-z])\.?|(?<!\\)\\[,;:! ()[\]]|~|(?<!\\)\$/g
const wrapper =
  /\\(?:text|mbox|textrm|textbf|textit|mathrm|mathbf|mathit|mathsf|boldsymbol|operatorname)\s*\{([^{}]*)\}/g

/** Words that make a number larger, as `2 million` and `2 \text{ million dollars}`. */
const magnitudes = tableOf(
  'dozen:12 hundred:100 thousand:1000 million:10^6 billion:10^9 trillion:10^{12} quadrillion:10^{15} lakh:10^5 crore:10^7 mln:10^6 bn:10^9',
)
const larger = Object.keys(magnitudes).join('|')
const magnitude = new RegExp(
  String.raw`(?<=\d)\s*(?:\\text\s*\{\s*(${larger})s?(?![A-Za-z])([^{}]*)\}|\b(${larger})s?(?![A-Za-z]))`,
  'gi',
)

/** Brackets by name. A vector is a tuple. */
const brackets = tableOf(String.raw`\langle:( \rangle:) \lbrace:\{ \rbrace:\} \lbrack:[ \rbrack:]`)

/** The content of the last `\boxed{…}` or, of `\boxed 5`, what follows; null where there is none. */
export function lastBoxed(text: string): string | null {
  const found = [...text.matchAll(/\\(?:boxed|fbox)(?:\s*\{|\s+([^\s{}$]+))/g)].at(-1)
  if (found === undefined) return null
  return found[1] ?? groupAt(text, found.index + found[0].length - 1)
}

/** An answer without what only dresses it. Braces of sets stay as `\{` and `\}`, a dollar sign as `\$`, words in `\text{…}`. */
export function undressed(text: string): string {
  const plain = unquoted(text)
    .replaceAll(/[！-～﹣\u{1d7ce}-\u{1d7ff}]/gu, (wide) => wide.normalize('NFKC'))
    .replaceAll(/[¼-¾⅐-⅞]/g, (one) => one.normalize('NFKC').replace(/^(\d+)⁄(\d+)$/, '\\frac{$1}{$2}'))
    .replaceAll(/[⁰¹²³⁴-⁹⁺⁻ⁿ]+/g, (raised) => `^{${raised.normalize('NFKC').replace('−', '-')}}`)
    .replaceAll(/[₀-₉]+/g, (lowered) => `_{${lowered.normalize('NFKC')}}`)
    .replaceAll(/√\s*\(/g, 'sqrt(')
    .replaceAll(/(?<=\d)[\u2009\u202f\u00a0](?=\d{3}(?!\d))/g, '')
    .replaceAll('\u00a0', ' ')
    .replaceAll(sign, (one) => signs[one] ?? one)
    .replaceAll(/(?<=\d)(?:\{,\}|,?\\[,;:! ])\s*(?=\d{3}(?!\d))/g, '')
    .replaceAll(dressing, ' ')
    .replaceAll(/\\[dtc]frac(?![A-Za-z])/g, '\\frac')
    .replaceAll(/\\[dt]binom(?![A-Za-z])/g, '\\binom')
    .replaceAll(/\\[lr](?:angle|brace|brack)(?![A-Za-z])/g, (name) => brackets[name] ?? name)
    .replace(/^\s*<([^<>]*,[^<>]*)>\s*$/, '($1)')
    .replaceAll(/\\degree(?![A-Za-z])/g, '^\\circ ')
    .replaceAll(/\\(?:bf|rm|it)(?![A-Za-z])/g, ' ')
    .replaceAll(/\\(?:long)?rightarrow(?![A-Za-z])/g, '\\to ')
    .replaceAll(/\{([^{}]*)\\over(?![A-Za-z])([^{}]*)\}/g, '\\frac{$1}{$2}')
    .replace(/^([^{}]*)\\over(?![A-Za-z])([^{}]*)$/, '\\frac{$1}{$2}')
    .replaceAll(/(?<=\d)\s*x\s*(?=10\s*(?:\^|\*\*))/g, '\\times ')
    .replaceAll(/\{([^{}]*)\\choose(?![A-Za-z])([^{}]*)\}/g, '\\binom{$1}{$2}')
    .replaceAll(/\\(?:varnothing|emptyset)(?![A-Za-z])|\\\{\s*\\\}/g, '\\emptyset')
    .replaceAll(/\+\/-/g, '\\pm ')
    .replaceAll(magnitude, (_, inText: string | undefined, more = '', bare = '') => {
      const times = `\\times ${magnitudes[String(inText ?? bare).toLowerCase()] ?? ''}`
      return inText === undefined ? `${times} ` : `${times}\\text{ ${more}}`
    })
    .replaceAll(/\\text\{\s*\}/g, '')
    .trim()
    .replace(/(?<!\.)\.$/, '')
    .replace(/^=\s*(?=[^=]*$)/, '')
  return withoutBraces(withoutThousands(plain.trim()))
}

/** The words of `\text{…}` and its kin as plain words. */
export function unwrapped(text: string): string {
  return text.replaceAll(wrapper, ' $1 ').trim()
}

/** The same for single letters, numbers, and choices in brackets only: what is a word stays one, and is not understood. */
export function unwrappedLetters(text: string): string {
  return text.replaceAll(wrapper, (all, inner: string) =>
    /^\s*(?:\(?[A-Za-z]\)?|[\d.,]+)\.?\s*$/.test(inner) && !/^\\(?:mathbf|boldsymbol)/.test(all) ? inner : all,
  )
}

/** What two texts have in common if they are the same: blanks count between words only, case does in all but words of a language. */
export function canonical(text: string): string {
  return unwrapped(text)
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ (?![A-Za-z0-9])|(?<![A-Za-z0-9]) /g, '')
    .replaceAll(/(?<![\\\p{L}])\p{L}{2,}(?!\p{L})/gu, (word) => (isOfALanguage(word) ? word.toLowerCase() : word))
}

const shortWords = new Set(
  (
    'yes no odd none true real all one two three four five six ten zero even east west north south left right up down red blue green ' +
    'pink cat dog the a an of is are not in on for no and or to at by if may june july mon tue wed thu fri sat sun heart club spade tom ' +
    'amy bob ann joe sam tim ben max mars moon sun cone cube line ray kite ball coin card dime some both man boy girl'
  ).split(' '),
)

/**
 * Whether letters are a word and no product: `AaBb`, `CO` and `mgh` are products, signs or formulas, of which the case counts. A
 * word of five letters or more has a vowel and another letter, does not climb the alphabet, and has two doubled ones
 * at no two places, as genotypes have.
 */
function isOfALanguage(word: string): boolean {
  if (!/^(?:\p{Lu}?\p{Ll}+|\p{Lu}{3,})$/u.test(word)) return false
  const lower = word.toLowerCase()
  if (shortWords.has(lower)) return true
  const climbs = lower.split('').toSorted().join('') === lower
  const pairs = lower.match(/(.)\1/g)?.length ?? 0
  return lower.length > 4 && /[aeiouy]/.test(lower) && /[^aeiou]/.test(lower) && !climbs && pairs < 2
}

/** Whether a text is words and no formula, also in brackets: letters side by side are in an order, as `D B C A` and the cycle `(a c b)`. */
export function isWords(text: string): boolean {
  const plain = unwrapped(text).replace(/^[\s([]+|[\s)\].]+$/g, '')
  const words = plain.split(/\s+|(?<=\p{L}{2})['-](?=\p{L}{2})/u)
  if (words.some((word) => functionNames[word] !== undefined)) return false
  return (
    words.every((word) => /^\p{L}+$/u.test(word)) &&
    /\p{L}\s*\p{L}/u.test(plain) &&
    !/^(?:[xyz\s]+|pi|inf|infinity)$/i.test(plain)
  )
}

/** Whether a text is a date, which only looks like a difference or a quotient. */
export function isDate(text: string): boolean {
  return /^(?:\d{4}([-/])\d{1,2}\1\d{1,2}|\d{1,2}([-/])\d{1,2}\2\d{4})$/.test(text)
}

/** Parts between a sign outside of all brackets, trimmed; empty ones are left out. */
export function partsOf(text: string, separator: RegExp): readonly string[] {
  const at = new RegExp(separator.source, 'y')
  const parts: string[] = []
  let depth = 0
  let start = 0
  for (let i = 0; i < text.length; i += 1) {
    const one = text[i] ?? ''
    if ('([{'.includes(one)) depth += 1
    else if (')]}'.includes(one)) depth -= 1
    else if (depth === 0) {
      at.lastIndex = i
      const [found] = at.exec(text) ?? []
      if (found === undefined || found === '') continue
      parts.push(text.slice(start, i))
      start = i + found.length
      i = start - 1
    }
  }
  return [...parts, text.slice(start)].map((part) => part.trim()).filter((part) => part !== '')
}

/**
 * `1,000` as `1000`: outside of brackets every such number, inside only what cannot be two (`1,000` has a part `000`).
 * With blanks, as `1 000`, it must be all of the text.
 */
function withoutThousands(text: string): string {
  if (/^[-+]?\d{1,3}(?: \d{3})+(?:\.\d+)?$/.test(text)) return text.replaceAll(' ', '')
  const parts = text.split(/((?:\\\{|[([]).*(?:\\\}|[)\]]))/s)
  return parts
    .map((part, i) =>
      part.replaceAll(/(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])/g, (number) =>
        i % 2 === 0 || /,0/.test(number) ? number.replaceAll(',', '') : number,
      ),
    )
    .join('')
}

/** Without what Markdown puts around all of it. */
function unquoted(text: string): string {
  return /^\s*(\*\*|`|")(?!\1)([^*`"]+)\1\s*$/.exec(text)?.[2] ?? text
}

function withoutBraces(text: string): string {
  return text.startsWith('{') && groupAt(text, 0)?.length === text.length - 2 ? text.slice(1, -1).trim() : text
}

function groupAt(text: string, start: number): string | null {
  let depth = 0
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === '{') depth += 1
    else if (text[at] === '}') depth -= 1
    if (depth === 0) return text.slice(start + 1, at)
  }
  return null
}

/** What stands between two brackets that belong together and hold all of the text. */
export function enclosed(text: string, open: RegExp, close: RegExp): string | null {
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
