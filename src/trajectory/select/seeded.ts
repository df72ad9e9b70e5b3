import { sha256 } from '../../core/index.ts'

/** In [0, 1), the same for the same words. */
export function chance(words: string): number {
  return Number.parseInt(sha256(words).slice(0, 12), 16) / 2 ** 48
}

/** One number in [0, 1) after the other, the same for the same words. */
export function seeded(words: string): () => number {
  let drawn = 0
  return () => {
    drawn += 1
    return chance(`${words}\0${drawn}`)
  }
}
