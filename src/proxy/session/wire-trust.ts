import type { WireFault } from '../../trajectory/index.ts'

/** Whole answers in a row that break the rules of the wire until the engine is refused. */
const mostFaults = 3

/** What parsers and gateways drop of a stream, and not of a whole answer. */
const losses = ['missing_ids', 'missing_logprobs'] as const
type Loss = (typeof losses)[number]

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
  /** Whole answers are asked for because streams lacked something; `in vain`: they lack it too. */
  private forLoss: 'no' | 'yes' | 'in vain' = 'no'

  /** Notes an answer; `streamed`: the engine streamed it. True where that was one fault too many. */
  note(fault: WireFault | null, loss: Loss | null, streamed: boolean): boolean {
    // Another engine is no worse than the one before.
    if (fault === null || fault === 'engine_changed') {
      this.inRow = 0
      return loss !== null && this.noteLoss(streamed)
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

  /** An engine that leaves it out of whole answers too is asked as before: its clients would wait for nothing. */
  private noteLoss(streamed: boolean): boolean {
    if (!streamed && this.forLoss === 'yes') {
      this.forLoss = 'in vain'
      this.wholeOnly = false
    }
    if (!streamed || this.wholeOnly || this.forLoss !== 'no') return false
    this.forLoss = 'yes'
    this.wholeOnly = true
    return true
  }
}

/** What an answer lacks that its engine gives; null where it lacks nothing. */
export function lossOf(findings: readonly string[]): Loss | null {
  return losses.find((loss) => findings.includes(loss)) ?? null
}
