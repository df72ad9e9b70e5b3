/** Gives every trained token of an export its own token of the journal: none is trained twice. */
import type { Place } from './compare-places.ts'

/** Trained tokens of a row that one answer of the journal explains; any of `places` would do. */
export interface Claim {
  readonly rowId: string
  /** Row positions of the trained tokens, ascending. */
  readonly positions: readonly number[]
  readonly places: readonly Place[]
}

/**
 * Assigns each claim one of its places so that no journal token is used twice, moving earlier claims where siblings
 * with equal tokens allow it (augmenting paths as in Kuhn 1955). Returns the claims that cannot be served.
 */
export function assignClaims(claims: readonly Claim[]): readonly Claim[] {
  const holders = new Map<number, Map<Claim, Place>>()
  const assigned = new Map<Claim, Place>()

  const overlapping = (claim: Claim, place: Place): readonly Claim[] => {
    const wanted = new Set(claim.positions.map((position) => position - place.start))
    const found: Claim[] = []
    for (const [other, at] of holders.get(place.choice.number) ?? []) {
      if (other !== claim && other.positions.some((position) => wanted.has(position - at.start))) found.push(other)
    }
    return found
  }
  const hold = (claim: Claim, place: Place): void => {
    const before = assigned.get(claim)
    if (before !== undefined) holders.get(before.choice.number)?.delete(claim)
    assigned.set(claim, place)
    const at = holders.get(place.choice.number) ?? new Map<Claim, Place>()
    holders.set(place.choice.number, at.set(claim, place))
  }
  const place = (claim: Claim, visited: Set<number>): boolean => {
    for (const option of claim.places) {
      if (visited.has(option.choice.number)) continue
      const blockers = overlapping(claim, option)
      if (blockers.length > 0) {
        visited.add(option.choice.number)
        if (!blockers.every((blocker) => place(blocker, visited))) continue
        if (overlapping(claim, option).length > 0) continue
      }
      hold(claim, option)
      return true
    }
    return false
  }
  // Claims with few places first: they have no way to give in.
  const order = claims.toSorted((a, b) => a.places.length - b.places.length)
  return order.filter((claim) => !place(claim, new Set()))
}
