/** What the pages of a rollout's tree get: its calls as they hang together, and the family that it is of. */
import type { CallClass, Id } from '../../core/index.ts'
import type { DriftCause } from '../../trajectory/index.ts'

/** A call in the tree of a rollout, with where its line of the drawing runs. */
export interface TreeLine {
  readonly sessionId: Id
  readonly role: string
  readonly seq: number
  readonly class: CallClass
  readonly outcome: string
  readonly delivery: string
  /** The call of this session whose answer its prompt goes on from; null: none, or nobody knows. */
  readonly parent: number | null
  /** Its column in the drawing, from 0 and below 12. */
  readonly lane: number
  /** Columns in which what goes on from it stands further down. */
  readonly out: readonly number[]
  /** Columns that pass by. */
  readonly through: readonly number[]
  readonly sampledTokens: number | null
  readonly replayedTokens: number
  /** Sampled tokens that train in one of the rollout's rows: each at most once. */
  readonly trained: number
  /** Why the others do not; null where all do, or nobody says. */
  readonly maskReason: string | null
  readonly forks: readonly {
    readonly cause: DriftCause
    readonly fromSeq: number | null
    readonly tokensAffected: number
  }[]
  readonly preview: string
}

/** One page of a rollout's calls. */
export interface TreePage {
  readonly total: number
  readonly rows: readonly TreeLine[]
  readonly next: number | null
}

/** A rollout of a family, or the place at which others go on from it. */
export type FamilyLine =
  | {
      readonly kind: 'rollout'
      readonly depth: number
      readonly rolloutId: Id
      readonly sessionId: Id
      /** Null where it has no number that counts. */
      readonly reward: number | null
      readonly calls: number
      /** Calls that were answered from the record of the rollout that it goes on from. */
      readonly replayedCalls: number
      readonly sampledTokens: number
      readonly trainedTokens: number
    }
  | {
      readonly kind: 'place'
      readonly depth: number
      /** Number of the call in the conversation, from 1. */
      readonly call: number
      readonly sessionId: Id
      readonly seq: number
      /** Mean reward of the rollouts that came through it; null where none has one. */
      readonly value: number | null
      /** How many of them have a reward. */
      readonly count: number
    }

/** The family of a rollout, ancestors first. */
export interface FamilyPage {
  readonly lines: readonly FamilyLine[]
  /** Lines that are not shown. */
  readonly left: number
}
