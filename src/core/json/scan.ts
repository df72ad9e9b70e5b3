import { PaddockError } from '../errors.ts'
import { ShortTexts } from './short-texts.ts'

/**
 * Byte-level reading of JSON (RFC 8259) without building values: where things start and end. The bytes are the truth;
 * nothing here decodes, so a caller can cut and splice and leave the rest untouched.
 */

const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
const comma = 0x2c
const colon = 0x3a

/** One member of an object: `[keyStart, keyEnd)` holds the quoted key, `[valueStart, valueEnd)` the value. */
export interface JsonMember {
  /** The key, decoded. */
  readonly key: string
  readonly keyStart: number
  readonly keyEnd: number
  readonly valueStart: number
  readonly valueEnd: number
}

/** Index of the first byte at or after `at` that is not JSON white space. */
export function skipSpace(bytes: Uint8Array, at: number): number {
  let i = at
  for (;;) {
    const byte = bytes[i]
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return i
    i += 1
  }
}

/** Index behind the closing quote of the string that starts at `at`. Throws `BODY_INVALID_JSON` when it does not end. */
export function skipString(bytes: Uint8Array, at: number): number {
  let i = at + 1
  const end = bytes.length
  for (;;) {
    const near = Math.min(end, i + steppedBytes)
    while (i < near) {
      const byte = bytes[i]
      if (byte === quote) return i + 1
      i += byte === backslash ? 2 : 1
    }
    if (i >= end) break
    // Long text: the next quote is found natively, and escaped where an odd number of backslashes stands before it.
    const found = bytes.indexOf(quote, i)
    if (found === -1) break
    let before = found
    while (before > i && bytes[before - 1] === backslash) before -= 1
    if ((found - before) % 2 === 0) return found + 1
    i = found + 1
  }
  throw invalid('a string does not end', at)
}

/** A native search costs as much as so many bytes. */
const steppedBytes = 64

/** How deep the brackets of the values are nested that were passed over. */
interface Nesting {
  deepest: number
}

/**
 * Index behind the value that starts at `at`. Trusts the inside of arrays and objects: only brackets and strings are
 * followed, so use it on text that a parser accepts as well. Throws `BODY_INVALID_JSON` at a premature end.
 */
export function skipValue(bytes: Uint8Array, at: number, nesting: Nesting | null = null): number {
  const first = bytes[at]
  if (first === quote) return skipString(bytes, at)
  const end = bytes.length
  if (first === openBrace || first === openBracket) {
    let depth = 0
    let i = at
    while (i < end) {
      const byte = bytes[i]
      if (byte === quote) {
        i = skipString(bytes, i)
        continue
      }
      if (byte === openBrace || byte === openBracket) {
        depth += 1
        if (nesting !== null && depth > nesting.deepest) nesting.deepest = depth
      } else if (byte === closeBrace || byte === closeBracket) {
        depth -= 1
        if (depth === 0) return i + 1
      }
      i += 1
    }
    throw invalid('an object or array does not end', at)
  }
  let i = at
  while (i < end) {
    const byte = bytes[i]
    if (byte === comma || byte === closeBrace || byte === closeBracket || byte === 0x20 || byte === 0x0a) break
    if (byte === 0x0d || byte === 0x09) break
    i += 1
  }
  if (i === at) throw invalid('a value is missing', at)
  return i
}

/**
 * The members of the object that starts at `at` (after white space), in order, duplicates included. `nesting` learns how
 * deep their values are. Throws `BODY_INVALID_JSON` where there is no object or it is malformed at its own level.
 */
export function scanMembers(
  bytes: Uint8Array,
  at = 0,
  nesting: Nesting | null = null,
): { readonly members: JsonMember[]; readonly end: number } {
  let i = skipSpace(bytes, at)
  if (bytes[i] !== openBrace) throw invalid('an object is expected', i)
  const members: JsonMember[] = []
  i = skipSpace(bytes, i + 1)
  if (bytes[i] === closeBrace) return { members, end: i + 1 }
  for (;;) {
    if (bytes[i] !== quote) throw invalid('a key is expected', i)
    const keyStart = i
    const keyEnd = skipString(bytes, i)
    i = skipSpace(bytes, keyEnd)
    if (bytes[i] !== colon) throw invalid('a colon is expected', i)
    const valueStart = skipSpace(bytes, i + 1)
    const valueEnd = skipValue(bytes, valueStart, nesting)
    members.push({ key: keyText(bytes, keyStart, keyEnd), keyStart, keyEnd, valueStart, valueEnd })
    i = skipSpace(bytes, valueEnd)
    if (bytes[i] === closeBrace) return { members, end: i + 1 }
    if (bytes[i] !== comma) throw invalid('a comma or the end of the object is expected', i)
    i = skipSpace(bytes, i + 1)
  }
}

/** Keys of every body are the same few. */
const keys = new ShortTexts()

function keyText(bytes: Uint8Array, start: number, end: number): string {
  const text = keys.find(bytes, start + 1, end - 1)
  return text === null || text.includes('\\') ? decodeString(bytes, start, end) : text
}

/** The elements of the array that starts at `at`, as `[start, end)` pairs in order. Throws `BODY_INVALID_JSON`. */
export function scanElements(bytes: Uint8Array, at: number): { readonly start: number; readonly end: number }[] {
  let i = skipSpace(bytes, at)
  if (bytes[i] !== openBracket) throw invalid('an array is expected', i)
  const elements: { start: number; end: number }[] = []
  i = skipSpace(bytes, i + 1)
  if (bytes[i] === closeBracket) return elements
  for (;;) {
    const end = skipValue(bytes, i)
    elements.push({ start: i, end })
    i = skipSpace(bytes, end)
    if (bytes[i] === closeBracket) return elements
    if (bytes[i] !== comma) throw invalid('a comma or the end of the array is expected', i)
    i = skipSpace(bytes, i + 1)
  }
}

/** The deepest nesting of brackets in the text. Cheap and without recursion: a guard before anything that recurses. */
export function nestingDepth(bytes: Uint8Array): number {
  let depth = 0
  let deepest = 0
  let i = 0
  while (i < bytes.length) {
    const byte = bytes[i]
    if (byte === quote) {
      i = skipString(bytes, i)
      continue
    }
    if (byte === openBrace || byte === openBracket) {
      depth += 1
      if (depth > deepest) deepest = depth
    } else if (byte === closeBrace || byte === closeBracket) depth -= 1
    i += 1
  }
  return deepest
}

/** The decoded text of the quoted string `[start, end)`. */
export function decodeString(bytes: Uint8Array, start: number, end: number): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + start + 1, end - start - 2).toString('utf8')
  if (!text.includes('\\')) return text
  try {
    const decoded: unknown = JSON.parse(`"${text}"`)
    return String(decoded)
  } catch (cause) {
    throw new PaddockError('BODY_INVALID_JSON', `A string at byte ${start} has a bad escape.`, { cause })
  }
}

function invalid(what: string, at: number): PaddockError {
  return new PaddockError('BODY_INVALID_JSON', `Not valid JSON: ${what} at byte ${at}.`, { data: { at } })
}
