import { type WireFault, wireFaultOf } from '../../trajectory/index.ts'

/** Whole answers in a row that break the rules of the wire until the engine is refused. */
const mostFaults = 3

/**
 * What a session still asks an engine for. After the first fault in a stream it asks for whole answers, which parsers and
 * gateways leave alone (its client gets streams all the same); where those are at fault too, the engine is refused.
 */
export class WireTrust {
  /** Streams are made of whole answers from here on. */
  wholeOnly = false
  /** Why the engine is refused, null while it is not. */
  refusedFor: WireFault | null = null
  private inRow = 0

  /** Notes an answer that brought ids; `streamed`: the engine streamed it. True where that was one fault too many. */
  note(findings: readonly string[], streamed: boolean): boolean {
    const fault = wireFaultOf(findings)
    // Another engine is no worse than the one before.
    if (fault === null || fault === 'engine_changed') {
      this.inRow = 0
      return false
    }
    if (streamed && !this.wholeOnly) {
      this.wholeOnly = true
      return true
    }
    this.inRow += 1
    if (this.inRow < mostFaults || this.refusedFor !== null) return false
    this.refusedFor = fault
    return true
  }
}
