import type { Id } from '../../core/index.ts'

/** A claim's lease as the catalogue has it: its length, and how often it was renewed. */
export interface Lease {
  readonly claim: Id | null
  readonly lease_ms: number | null
  readonly renewals: number
}

/**
 * Leases by the clock of this process alone, which no change of the date moves: a lease is over once its count of renewals stayed the same
 * for its whole length while this process looked. So a process that was away takes no lease from anybody.
 */
export class LeaseWatch {
  readonly #now: () => number
  readonly #seen = new Map<Id, { readonly renewals: number; readonly since: number }>()

  /** `now`: milliseconds of a clock that only goes forward. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Milliseconds until a lease is over. The first look at it, and the first after a renewal, begins its time. */
  leftMs({ claim, lease_ms: leaseMs, renewals }: Lease): number {
    if (claim === null || leaseMs === null) return 0
    const now = this.#now()
    const seen = this.#seen.get(claim)
    if (seen?.renewals === renewals) return Math.max(0, leaseMs - (now - seen.since))
    this.#seen.set(claim, { renewals, since: now })
    return leaseMs
  }

  forget(claim: Id | null): void {
    if (claim !== null) this.#seen.delete(claim)
  }
}
