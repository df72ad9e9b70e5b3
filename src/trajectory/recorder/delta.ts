/**
 * A text as its difference from an earlier one: common prefix, common suffix, and what lies between. Harness bodies
 * grow in the middle (the end of `messages`) while tools and parameters follow behind, so a suffix is worth as much
 * as a prefix.
 */
import { PaddockError } from '../../core/index.ts'

/** How much of the base is kept on either side; the middle is stored beside it. */
export interface Delta {
  readonly prefix: number
  readonly suffix: number
}

/**
 * The longest common prefix, then the longest common suffix that does not overlap it. `guess`: how long the prefix may well
 * be at least; it costs nothing but time where it is not.
 */
export function findDelta(base: Uint8Array, next: Uint8Array, guess = 0): Delta {
  if (base === next) return { prefix: next.byteLength, suffix: 0 }
  const from = view(base)
  const to = view(next)
  const limit = Math.min(from.length, to.length)
  const prefix = commonPrefix(from, to, limit, guess)
  return { prefix, suffix: commonSuffix(from, to, limit - prefix) }
}

/** The bytes of `next` that its base does not have. A view. */
export function middleOf(next: Uint8Array, delta: Delta): Uint8Array {
  return next.subarray(delta.prefix, next.byteLength - delta.suffix)
}

/** The text again. Throws `STORE_CORRUPT` when the delta does not fit its base. */
export function applyDelta(base: Uint8Array, delta: Delta, middle: Uint8Array): Uint8Array<ArrayBuffer> {
  if (delta.prefix + delta.suffix > base.byteLength) {
    throw new PaddockError('STORE_CORRUPT', 'a stored difference is longer than its base')
  }
  const out = new Uint8Array(delta.prefix + middle.byteLength + delta.suffix)
  out.set(base.subarray(0, delta.prefix))
  out.set(middle, delta.prefix)
  out.set(base.subarray(base.byteLength - delta.suffix), delta.prefix + middle.byteLength)
  return out
}

function view(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** What is compared byte by byte: a call of memcmp costs as much. */
const byByte = 128

/** The guess, a few bytes, then doubling steps of memcmp and bisection inside the step that differs. */
function commonPrefix(a: Buffer, b: Buffer, limit: number, guess: number): number {
  let known = guess > byByte && guess <= limit && a.compare(b, 0, guess, 0, guess) === 0 ? guess : 0
  let differs = Math.min(known + byByte, limit)
  while (known < differs && a[known] === b[known]) known += 1
  if (known < differs) return known
  let step = 256
  while (known < limit) {
    const end = Math.min(known + step, limit)
    if (a.compare(b, known, end, known, end) !== 0) break
    known = end
    step *= 2
  }
  differs = Math.min(known + step, limit)
  while (differs - known > byByte) {
    const middle = (known + differs + 1) >> 1
    if (a.compare(b, known, middle, known, middle) === 0) known = middle
    else differs = middle - 1
  }
  while (known < differs && a[known] === b[known]) known += 1
  return known
}

function commonSuffix(a: Buffer, b: Buffer, limit: number): number {
  const same = (from: number, to: number): boolean =>
    a.compare(b, b.length - to, b.length - from, a.length - to, a.length - from) === 0
  let known = 0
  let differs = Math.min(byByte, limit)
  while (known < differs && a[a.length - 1 - known] === b[b.length - 1 - known]) known += 1
  if (known < differs) return known
  let step = 256
  while (known < limit) {
    const end = Math.min(known + step, limit)
    if (!same(known, end)) break
    known = end
    step *= 2
  }
  differs = Math.min(known + step, limit)
  while (differs - known > byByte) {
    const middle = (known + differs + 1) >> 1
    if (same(known, middle)) known = middle
    else differs = middle - 1
  }
  while (known < differs && a[a.length - 1 - known] === b[b.length - 1 - known]) known += 1
  return known
}
