/** A seeded source of choices; the same seed gives the same sequence on every machine. */
export interface Dice {
  /** A whole number from `low` to `high`, both included. */
  readonly between: (low: number, high: number) => number
  /** One of the items. Throws on an empty list. */
  readonly pick: <T>(items: readonly T[]) => T
  readonly shuffled: <T>(items: readonly T[]) => readonly T[]
}

/** Mulberry32 (Tommy Ettinger, public domain): 32-bit integer arithmetic only, so nothing depends on rounding. */
export function dice(seed: number): Dice {
  let state = seed | 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
  const between = (low: number, high: number) => low + (next() % (high - low + 1))
  const pick = <T>(items: readonly T[]): T => {
    const found = items[between(0, items.length - 1)]
    if (found === undefined) throw new RangeError('There is nothing to pick from.')
    return found
  }
  return {
    between,
    pick,
    shuffled: (items) => {
      const out = [...items]
      for (let at = out.length - 1; at > 0; at -= 1) {
        const other = between(0, at)
        const [a, b] = [out[at], out[other]]
        if (a !== undefined && b !== undefined) [out[at], out[other]] = [b, a]
      }
      return out
    },
  }
}
