/** Where time comes from. Passed in, never global, so that tests own it. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number
  /** Milliseconds of a clock that never goes back; for durations. */
  monotonic(): number
}

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}
