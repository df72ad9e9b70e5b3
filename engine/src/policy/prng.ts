import { createHash } from 'node:crypto'

/** Mulberry32: a small, well-spread 32-bit generator. Returns numbers in [0, 1). The same seed gives the same run. */
export function mulberry32(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** A 32-bit seed from any words, so that seed, counter and choice index never collide by addition. */
export function seedOf(...parts: readonly (string | number | bigint)[]): number {
  return createHash('sha256').update(parts.join('\u0000')).digest().readUInt32LE(0)
}
