import { type Id, PaddockError } from '../../core/index.ts'
import { type CallRecord, type ChoiceRecord, type Segment, type SessionLog, tokenFlag } from '../contract/index.ts'

/** One step of a path: tokens `[0, length)` of a segment. */
export interface PathStep {
  readonly segment: Segment
  readonly length: number
}

/** A session's segments and calls by id, and the ways through them. */
export class Forest {
  readonly log: SessionLog
  readonly #segments = new Map<Id, Segment>()
  readonly #calls = new Map<Id, CallRecord>()
  /** Answers of which a logprob is no number, by call and choice. */
  readonly #broken = new Set<string>()

  constructor(log: SessionLog) {
    this.log = log
    for (const segment of log.segments) {
      this.#segments.set(segment.id, segment)
      if (segment.origin === 'sampled' && segment.flags?.some((flag) => (flag & tokenFlag.nan) !== 0) === true)
        this.#broken.add(answerOf(segment))
    }
    for (const call of log.calls) this.#calls.set(call.intent.id, call)
  }

  /** The call that brought a segment; null for imported ones. */
  callOf(segment: Segment): CallRecord | null {
    return segment.callId === null ? null : (this.#calls.get(segment.callId) ?? null)
  }

  /** Sampled by a forward pass that gave no number somewhere in the same answer. */
  isBroken(segment: Segment): boolean {
    return this.#broken.size > 0 && this.#broken.has(answerOf(segment))
  }

  /** The choice of the call whose answer a sampled segment is. */
  choiceOf(segment: Segment): ChoiceRecord | null {
    const choices = this.callOf(segment)?.commit?.choices ?? []
    return choices.find((choice) => choice.index === segment.choice) ?? null
  }

  /** Root-to-leaf steps to the end of a segment. Throws `STORE_CORRUPT` where a parent is missing or runs in a circle. */
  pathTo(leaf: Segment): PathStep[] {
    const steps: PathStep[] = []
    const seen = new Set<Id>()
    let segment: Segment | undefined = leaf
    let length = leaf.tokens.length
    while (segment !== undefined) {
      if (seen.has(segment.id)) throw corrupt(segment, 'hangs in a circle')
      seen.add(segment.id)
      if (length > segment.tokens.length) throw corrupt(segment, `has a child at ${length} behind its end`)
      steps.push({ segment, length })
      if (segment.parent === null) return steps.toReversed()
      length = segment.parent.offset
      const parent = this.#segments.get(segment.parent.segmentId)
      if (parent === undefined) throw corrupt(segment, `hangs on ${segment.parent.segmentId}, which is not there`)
      segment = parent
    }
    return steps.toReversed()
  }
}

function answerOf({ callId, choice }: Segment): string {
  return `${callId} ${choice}`
}

function corrupt(segment: Segment, problem: string): PaddockError {
  return new PaddockError('STORE_CORRUPT', `Segment ${segment.id} ${problem}`, { data: { segment: segment.id } })
}
