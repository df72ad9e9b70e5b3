import type { DriftCause, Segment, SessionLog } from '../contract/index.ts'
import type { SelectionSummary } from '../rows-contract.ts'

/** Adds up how often prompts extended what they should have extended. */
export class DriftTally {
  #calls = 0
  #extended = 0
  #forked = 0
  #exact = 0
  readonly #forks: Partial<Record<DriftCause, number>> = {}

  /** Counts the answered calls of a session. */
  add(log: SessionLog): void {
    const segments = new Map(log.segments.map((segment) => [segment.id, segment]))
    for (const { commit } of log.calls) {
      if (commit === null || commit.choices.length === 0) continue
      this.#calls += 1
      if (commit.findings.length === 0) this.#exact += 1
      for (const { cause } of commit.forks) this.#forks[cause] = (this.#forks[cause] ?? 0) + 1
      if (commit.forks.length > 0) this.#forked += 1
      else if (commit.promptLeaf !== null && runsThroughAnAnswer(segments, commit.promptLeaf)) this.#extended += 1
    }
  }

  /** The sums so far. */
  total(): SelectionSummary['drift'] {
    return {
      calls: this.#calls,
      forks: { ...this.#forks },
      shouldExtend: this.#extended + this.#forked,
      extended: this.#extended,
      exact: this.#exact,
    }
  }
}

function runsThroughAnAnswer(segments: ReadonlyMap<string, Segment>, leaf: string): boolean {
  let segment = segments.get(leaf)
  while (segment !== undefined) {
    if (segment.origin === 'sampled') return true
    segment = segment.parent === null ? undefined : segments.get(segment.parent.segmentId)
  }
  return false
}
