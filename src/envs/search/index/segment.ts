/** Passages of one segment: what fits a 16-bit number, so that a posting takes four bytes. */
export const segmentCapacity = 65_536

/**
 * Postings of up to {@link segmentCapacity} passages. Those of term `t` are `offsets[t]` up to `offsets[t + 1]` in
 * `documents` (ascending numbers within the segment) and `counts` (occurrences, at most 65,535).
 */
export interface Segment {
  /** Passages. */
  readonly size: number
  /** Terms of all passages together, exact. */
  readonly totalTerms: number
  /** One byte per passage, see `lengths.ts`. */
  readonly lengths: Uint8Array
  readonly terms: ReadonlyMap<string, number>
  readonly offsets: Uint32Array
  readonly documents: Uint16Array
  readonly counts: Uint16Array
}
