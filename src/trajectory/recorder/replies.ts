/**
 * Replies in pieces. The events of a stream differ from each other by a word: a piece is stored as what it shares with
 * the piece before, at its start and its end, and what lies between. What lies between is then the text of the answer,
 * one word behind the other, and a twentieth of what the compressor had to read.
 */
import { PaddockError } from '../../core/index.ts'
import { type Cursor, readVarint, writeVarint } from './varint.ts'

/**
 * A reply in pieces; null where the offsets do not cut all of it into pieces, one behind the other. The offsets are the
 * first numbers of the marks' `pairs`.
 */
export function splitReply(reply: Uint8Array, pairs: readonly number[]): Uint8Array | null {
  const count = pairs.length / 2
  if (count < 2 || pairs[0] !== 0) return null
  const shapes: Cursor[] = [0, 1, 2].map(() => ({ bytes: new Uint8Array(5 * count), at: 0 }))
  const [prefixes, suffixes, middles] = shapes
  const text = new Uint8Array(reply.byteLength)
  let textEnd = 0
  const bytes = Buffer.from(reply.buffer, reply.byteOffset, reply.byteLength)
  const same = (at: number, other: number, length: number): boolean =>
    bytes.compare(bytes, at, at + length, other, other + length) === 0
  let [from, to] = [0, 0]
  let [prefix, suffix] = [0, 0]
  for (let place = 0; place < count; place += 1) {
    const start = pairs[2 * place] ?? 0
    const end = place + 1 < count ? (pairs[2 * place + 2] ?? 0) : reply.byteLength
    if (start > end || end > reply.byteLength || end - start >= 2 ** 31) return null
    const limit = Math.min(to - from, end - start)
    // Most pieces share as much as the piece before did: that is compared at once, and only what is beyond by byte.
    prefix = prefix <= limit && same(from, start, prefix) ? prefix : 0
    while (prefix < limit && bytes[from + prefix] === bytes[start + prefix]) prefix += 1
    suffix = suffix <= limit - prefix && same(to - suffix, end - suffix, suffix) ? suffix : 0
    while (suffix < limit - prefix && bytes[to - 1 - suffix] === bytes[end - 1 - suffix]) suffix += 1
    if (prefixes === undefined || suffixes === undefined || middles === undefined) return null
    writeVarint(prefixes, prefix)
    writeVarint(suffixes, suffix)
    writeVarint(middles, end - start - prefix - suffix)
    const middle = bytes.subarray(start + prefix, end - suffix)
    text.set(middle, textEnd)
    textEnd += middle.byteLength
    from = start
    to = end
  }
  const head: Cursor = { bytes: new Uint8Array(5), at: 0 }
  writeVarint(head, count)
  return Buffer.concat([
    head.bytes.subarray(0, head.at),
    ...shapes.map(({ bytes, at }) => bytes.subarray(0, at)),
    text.subarray(0, textEnd),
  ])
}

/** The reply again, and where its pieces begin. Throws `STORE_CORRUPT`. */
export function joinReply(bytes: Uint8Array): { readonly reply: Uint8Array; readonly offsets: readonly number[] } {
  const cursor: Cursor = { bytes, at: 0 }
  const count = readVarint(cursor)
  if (count > bytes.byteLength) throw broken()
  const column = (): number[] => Array.from({ length: count }, () => readVarint(cursor))
  const [prefixes, suffixes, middles] = [column(), column(), column()]
  const sum = (list: readonly number[]): number => list.reduce((all, one) => all + one, 0)
  const size = sum(prefixes) + sum(suffixes) + sum(middles)
  // Only the middles are in the bytes; a spoiled column must not ask for all memory.
  if (cursor.at + sum(middles) !== bytes.byteLength || size > 2 ** 32) throw broken()
  const reply = new Uint8Array(size)
  const offsets: number[] = []
  let [from, to] = [0, 0]
  for (let place = 0; place < count; place += 1) {
    const [prefix = 0, middle = 0, suffix = 0] = [prefixes[place], middles[place], suffixes[place]]
    if (prefix + suffix > to - from) throw broken()
    const start = to
    offsets.push(start)
    reply.copyWithin(start, from, from + prefix)
    reply.set(bytes.subarray(cursor.at, cursor.at + middle), start + prefix)
    reply.copyWithin(start + prefix + middle, to - suffix, to)
    cursor.at += middle
    from = start
    to = start + prefix + middle + suffix
  }
  return { reply, offsets }
}

function broken(): PaddockError {
  return new PaddockError('STORE_CORRUPT', 'a reply cannot be put together from its pieces')
}
