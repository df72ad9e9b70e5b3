import type { TokenTexts } from './token-texts.ts'

/** A text to look for, and what it is of. */
export interface Text {
  readonly text: string
  readonly message: number
}

/** Tokens `[start, end)` that hold one text, whole tokens only; uncertain: the text is somewhere in them. */
export interface Piece {
  readonly start: number
  readonly end: number
  readonly message: number
  readonly isCertain: boolean
}

/** The texts of tokens one behind the other, and where each token begins. */
interface Line {
  readonly bytes: Buffer
  /** Shape [T + 1]. */
  readonly offsets: readonly number[]
}

/**
 * Where texts stand, one behind the other. The first places where all can stand are compared with the last: a text whose two are the
 * same stands there. Each is looked for without the blanks at its edges, as it is and as the inside of a JSON string. Null: some text
 * is not there, or there in both spellings, or some token has no text of its own (a part of a character has none): another place may
 * then be taken for the right one.
 */
export function findPieces(tokens: Int32Array, texts: TokenTexts, wanted: readonly Text[]): readonly Piece[] | null {
  const line = lineOf(tokens, texts)
  const places = line === null ? null : placesOf(line.bytes, wanted)
  return line === null || places === null ? null : places.map((place) => ({ ...place, ...within(line, place) }))
}

interface Place {
  /** Bytes. */
  readonly start: number
  readonly end: number
  readonly message: number
  readonly isCertain: boolean
}

function placesOf(bytes: Buffer, wanted: readonly Text[]): readonly Place[] | null {
  const first: { readonly start: number; readonly text: Buffer }[] = []
  let from = 0
  for (const { text } of wanted) {
    const [found, another] = spellings(text)
      .map((spelling) => ({ start: bytes.indexOf(spelling, from), text: spelling }))
      .filter(({ start }) => start !== -1)
    if (found === undefined || another !== undefined) return null
    first.push(found)
    from = found.start + found.text.length
  }
  let to = bytes.length
  const last = first.toReversed().map(({ text }) => (to = bytes.lastIndexOf(text, to - text.length)))
  return first.map(({ start, text }, at) => {
    const latest = last.at(-1 - at) ?? start
    return { start, end: latest + text.length, message: wanted[at]?.message ?? 0, isCertain: latest === start }
  })
}

function lineOf(tokens: Int32Array, texts: TokenTexts): Line | null {
  const known: Uint8Array[] = []
  const offsets = [0]
  for (const id of tokens) {
    const text = texts.get(id)
    if (text === undefined) return null
    known.push(text)
    offsets.push((offsets.at(-1) ?? 0) + text.length)
  }
  return { bytes: Buffer.concat(known), offsets }
}

/** Tokens that lie wholly in a place, those without a byte at its edges left out. */
function within({ offsets }: Line, place: Place): { readonly start: number; readonly end: number } {
  let start = firstFrom(offsets, place.start)
  while (offsets[start + 1] === place.start) start += 1
  let end = start
  while ((offsets[end] ?? Infinity) < place.end && (offsets[end + 1] ?? Infinity) <= place.end) end += 1
  return { start, end }
}

function spellings(text: string): readonly Buffer[] {
  const trimmed = text.trim()
  return [...new Set([trimmed, JSON.stringify(trimmed).slice(1, -1)])].map((spelling) => Buffer.from(spelling))
}

/** The first place whose offset is `value` or more. */
function firstFrom(offsets: readonly number[], value: number): number {
  let low = 0
  let high = offsets.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((offsets[middle] ?? 0) < value) low = middle + 1
    else high = middle
  }
  return low
}
