/**
 * Reply marks as bytes: the number of marks, then a column of offsets and a column of times, each as steps from the
 * mark before. A column is all lowest bytes, then the rest of each step as a varint: the rests are nearly always the
 * same, which a compressor sees only where they stand together.
 */
import type { ReplyMark } from '../contract/index.ts'
import { type Cursor, cutShort, readVarint, writeVarint } from './varint.ts'

/** Times are kept to a tenth of a millisecond: finer is noise that no replay needs. */
const stepsPerMs = 10

/** Offset and time of each mark, one behind the other: doubles, little-endian. */
export function markPairs(marks: readonly ReplyMark[]): Uint8Array {
  // Out of a pool: a few numbers in memory of their own cost more than all else that is done with them.
  const pairs = Buffer.allocUnsafe(16 * marks.length)
  let at = 0
  for (const { offset, atMs } of marks) at = pairs.writeDoubleLE(atMs, pairs.writeDoubleLE(offset, at))
  return pairs
}

/** The same as numbers. */
export function pairsOf(bytes: Uint8Array): number[] {
  const pairs: number[] = []
  const doubles = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let at = 0; at < bytes.byteLength; at += 8) pairs.push(doubles.getFloat64(at, true))
  return pairs
}

/** Marks as bytes, given as pairs of offset and time. Offsets and times that step back are kept too. */
export function packMarks(pairs: readonly number[]): Uint8Array {
  const count = pairs.length / 2
  // A step is at most 64 bits of zigzag: one low byte and nine of rest.
  const out = new Uint8Array(10 + 20 * count)
  const cursor = { bytes: out, at: 0 }
  writeVarint(cursor, count)
  writeColumn(cursor, count, (place) => pairs[2 * place] ?? 0)
  writeColumn(cursor, count, (place) => Math.round((pairs[2 * place + 1] ?? 0) * stepsPerMs))
  return out.subarray(0, cursor.at)
}

/** The marks again, times to 0.1 ms. Throws `STORE_CORRUPT`. */
export function unpackMarks(bytes: Uint8Array): readonly ReplyMark[] {
  const cursor: Cursor = { bytes, at: 0 }
  const count = readVarint(cursor)
  if (count > bytes.byteLength) throw cutShort()
  const offsets = readColumn(cursor, count)
  const times = readColumn(cursor, count)
  return offsets.map((offset, place) => ({ offset, atMs: (times[place] ?? 0) / stepsPerMs }))
}

/** Steps in zigzag form, by arithmetic, because offsets may pass 2^31. */
function writeColumn(cursor: Cursor, count: number, valueAt: (place: number) => number): void {
  const lowest = cursor.at
  cursor.at += count
  let before = 0
  for (let place = 0; place < count; place += 1) {
    const value = valueAt(place)
    const step = value < before ? 2 * (before - value) - 1 : 2 * (value - before)
    before = value
    cursor.bytes[lowest + place] = step % 256
    writeVarint(cursor, Math.floor(step / 256))
  }
}

function readColumn(cursor: Cursor, count: number): readonly number[] {
  const lowest = cursor.bytes.subarray(cursor.at, cursor.at + count)
  cursor.at += count
  let value = 0
  return Array.from({ length: count }, (_, place) => {
    const step = (lowest[place] ?? 0) + 256 * readVarint(cursor)
    value += step % 2 === 0 ? step / 2 : -(step + 1) / 2
    return value
  })
}
