/**
 * Reply marks as bytes: the number of marks, then a column of offsets and a column of times, each as steps from the
 * mark before. A column is all lowest bytes, then the rest of each step as a varint: the rests are nearly always the
 * same, which a compressor sees only where they stand together.
 */
import { PaddockError } from '../../core/index.ts'
import type { ReplyMark } from '../contract.ts'

/** Times are kept to a tenth of a millisecond: finer is noise that no replay needs. */
const stepsPerMs = 10

/** Marks as bytes. Offsets and times that step back are kept too. */
export function packMarks(marks: readonly ReplyMark[]): Uint8Array {
  const out: number[] = []
  writeVarint(out, marks.length)
  writeColumn(
    out,
    marks.map((mark) => mark.offset),
  )
  writeColumn(
    out,
    marks.map((mark) => Math.round(mark.atMs * stepsPerMs)),
  )
  return Uint8Array.from(out)
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

interface Cursor {
  readonly bytes: Uint8Array
  at: number
}

/** Steps in zigzag form, by arithmetic, because offsets may pass 2^31. */
function writeColumn(out: number[], values: readonly number[]): void {
  const steps = values.map((value, place) => {
    const step = value - (values[place - 1] ?? 0)
    return step < 0 ? -2 * step - 1 : 2 * step
  })
  for (const step of steps) out.push(step % 256)
  for (const step of steps) writeVarint(out, Math.floor(step / 256))
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

/** 7 bits per byte, lowest first. */
function writeVarint(out: number[], value: number): void {
  let rest = value
  while (rest >= 128) {
    out.push((rest % 128) + 128)
    rest = Math.floor(rest / 128)
  }
  out.push(rest)
}

function readVarint(cursor: Cursor): number {
  let value = 0
  for (let scale = 1; ; scale *= 128) {
    const byte = cursor.bytes[cursor.at]
    if (byte === undefined) throw cutShort()
    cursor.at += 1
    value += (byte % 128) * scale
    if (byte < 128) return value
  }
}

function cutShort(): PaddockError {
  return new PaddockError('STORE_CORRUPT', 'reply marks end inside a number')
}
