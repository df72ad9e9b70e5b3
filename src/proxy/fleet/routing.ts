/** What routing looks at. */
export interface Candidate {
  readonly inFlight: number
  /** Sessions whose KV cache is expected there. */
  readonly sessions: number
}

/** Below this many running calls nobody is overloaded: a cache hit is worth more than an even spread. */
export const minimumLoad = 8

/**
 * Sticky least loaded: a session stays where its KV cache is, unless that replica runs more than `overload` times the
 * mean (bounded loads, Mirrokni et al. 2018, arXiv 1608.01350); else the replica with the fewest running calls, among
 * equals the one with the fewest sessions, then the first.
 */
export function choose<T extends Candidate>(serving: readonly T[], home: T | null, overload: number): T | null {
  if (home !== null && serving.includes(home)) {
    const mean = serving.reduce((sum, one) => sum + one.inFlight, 0) / serving.length
    if (home.inFlight < Math.max(minimumLoad, Math.ceil(overload * mean))) return home
  }
  let best: T | null = null
  for (const one of serving) {
    if (best === null || one.inFlight < best.inFlight) best = one
    else if (one.inFlight === best.inFlight && one.sessions < best.sessions) best = one
  }
  return best
}
