/** Reply marks as bytes: per mark the step of offset and of time since the one before, as varints. */
import { PaddockError } from '../../core/index.ts'
import type { ReplyMark } from '../contract.ts'

/** Times are kept to a tenth of a millisecond: two bytes per event instead of four of noise. */
const stepsPerMs = 10

/** Marks as bytes. Offsets and times that step back are kept too. */
export function packMarks(marks: readonly ReplyMark[]): Uint8Array {
  const out: number[] = []
  let offset = 0
  let time = 0
  for (const mark of marks) {
    const at = Math.round(mark.atMs * stepsPerMs)
    writeVarint(out, mark.offset - offset)
    writeVarint(out, at - time)
    offset = mark.offset
    time = at
  }
  return Uint8Array.from(out)
}

/** The marks again, times to 0.1 ms. Throws `STORE_CORRUPT`. */
export function unpackMarks(bytes: Uint8Array): readonly ReplyMark[] {
  const marks: ReplyMark[] = []
  const cursor = { at: 0 }
  let offset = 0
  let time = 0
  while (cursor.at < bytes.byteLength) {
    offset += readVarint(bytes, cursor)
    time += readVarint(bytes, cursor)
    marks.push({ offset, atMs: time / stepsPerMs })
  }
  return marks
}

/** Zigzag, then 7 bits per byte, lowest first; by arithmetic, because offsets may pass 2^31. */
function writeVarint(out: number[], value: number): void {
  let rest = value < 0 ? -2 * value - 1 : 2 * value
  while (rest >= 128) {
    out.push((rest % 128) + 128)
    rest = Math.floor(rest / 128)
  }
  out.push(rest)
}

function readVarint(bytes: Uint8Array, cursor: { at: number }): number {
  let value = 0
  let scale = 1
  for (;;) {
    const byte = bytes[cursor.at]
    if (byte === undefined) throw new PaddockError('STORE_CORRUPT', 'reply marks end inside a number')
    cursor.at += 1
    value += (byte % 128) * scale
    if (byte < 128) return value % 2 === 0 ? value / 2 : -(value + 1) / 2
    scale *= 128
  }
}
