/**
 * Words of a text by UAX #29 as Lucene's StandardTokenizer applies it (Unicode 12: a colon joins letters): letters and
 * digits run together, an underscore joins anything, `'` `.` `:` `·` join letters, `'` `.` `,` `;` join digits, and
 * each ideograph or hiragana stands alone.
 */
const word =
  /[\p{Script=Han}\p{Script=Hiragana}]|(?:(?<=\p{L}\p{M}*)['’.:·](?=\p{L})|(?<=\p{N})['’.,;](?=\p{N})|(?![\p{Script=Han}\p{Script=Hiragana}])[\p{L}\p{N}_\u203f\u2040\u2054]\p{M}*)+/gu

const ascii = /^[\0-\x7f]*$/
const none = 0
const letter = 1
const digit = 2
const joiner = 3

/** What each ASCII character is to the word rules. */
const kinds = Uint8Array.from({ length: 128 }, (_, code) => {
  const char = String.fromCharCode(code)
  if (/[a-z]/i.test(char)) return letter
  if (/[0-9]/.test(char)) return digit
  return char === '_' ? joiner : none
})

/** Longest word: StandardTokenizer's default `maxTokenLength`, which cuts longer ones into pieces. */
const maxLength = 255

/** Told of a word: it is `text[start … end)`, lower-cased. */
export type WordVisitor = (text: string, start: number, end: number) => void

/**
 * Calls `visit` with each word of the text, in order, without making a string of it. Text is normalised (NFKC) first, so that
 * what looks the same is the same word: composed and decomposed accents, ligatures, full-width letters.
 */
export function eachWordPlace(text: string, visit: WordVisitor): void {
  if (ascii.test(text)) return eachAsciiWord(text.toLowerCase(), visit)
  const lower = text.normalize('NFKC').toLowerCase()
  for (const found of lower.matchAll(word)) {
    if (/[\p{L}\p{N}]/u.test(found[0])) pieces(lower, found.index, found.index + found[0].length, visit)
  }
}

/** Calls `visit` with each word of the text, lower-cased, in order. */
export function eachWord(text: string, visit: (word: string) => void): void {
  eachWordPlace(text, (lower, start, end) => visit(lower.slice(start, end)))
}

function pieces(text: string, start: number, end: number, visit: WordVisitor): void {
  for (let at = start; at < end; at += maxLength) visit(text, at, Math.min(end, at + maxLength))
}

// The same rules by hand: nearly all text of an English corpus comes here, and the pattern takes five times as long.
function eachAsciiWord(text: string, visit: WordVisitor): void {
  const { length } = text
  let at = 0
  while (at < length) {
    if (kindAt(text, at) === none) {
      at += 1
      continue
    }
    const start = at
    let solid = false
    while (at < length) {
      const kind = kindAt(text, at)
      if (kind === none && !joins(text, at)) break
      if (kind === letter || kind === digit) solid = true
      at += 1
    }
    if (solid) pieces(text, start, at, visit)
  }
}

function joins(text: string, at: number): boolean {
  const char = text.charCodeAt(at)
  const before = kindAt(text, at - 1)
  const after = at + 1 < text.length ? kindAt(text, at + 1) : none
  // ' and . join both letters and digits; : joins letters; , and ; join digits.
  if (char === 0x27 || char === 0x2e) return (before === letter || before === digit) && before === after
  if (char === 0x3a) return before === letter && after === letter
  return (char === 0x2c || char === 0x3b) && before === digit && after === digit
}

function kindAt(text: string, at: number): number {
  return kinds[text.charCodeAt(at)] ?? none
}
