import type { UpstreamIds, UpstreamSink, UpstreamTerms } from '../upstream.ts'

/** A request as it was given to the fleet, without its body. */
export interface FleetAsk {
  readonly path: string
  readonly ids: UpstreamIds
  readonly sink: UpstreamSink
  readonly terms: UpstreamTerms
  /** Samples tokens; other questions are asked also during a pause and are no load. */
  readonly generates: boolean
}
