/** What is known of tasks by the attempts at them: what curricula choose on. */
import type { Digest, Id } from '../../core/index.ts'
import type { Disposition } from './trainer.ts'

/** Splits whose tasks are for evaluation: no training group takes one, and memory has none. */
export const heldOutSplits: ReadonlySet<string> = new Set(['validation', 'test'])

/** An attempt with this reward or more has passed. */
export const passReward = 1

/** By what attempts at one task are told apart. */
export const memoryKeys = ['run', 'harness', 'variant', 'version'] as const
export type MemoryKey = (typeof memoryKeys)[number]

export const memorySorts = ['pass_rate', 'attempts', 'uses', 'last'] as const
export type MemorySort = (typeof memorySorts)[number]

/** Bounds, both inclusive; null: none. */
export interface Between {
  readonly min: number | null
  readonly max: number | null
}

export interface MemoryQuery {
  readonly runId?: Id
  readonly harness?: string
  readonly variant?: string
  readonly taskDigests?: readonly Digest[]
  /** Numbers of weights. Only those of one run are compared: it goes with `runId`. */
  readonly versions?: Between
  /** Tasks without a number have no pass rate, and are in no band. */
  readonly passRate?: Between
  readonly attempts?: Between
  /** Dispositions `used`. */
  readonly uses?: Between
  /** No row used at this time or later: those never used are among them. */
  readonly unusedSince?: number
  /** Lines of one task are told apart by these; none: one line a task. */
  readonly by: readonly MemoryKey[]
  readonly sort: MemorySort
  readonly descending: boolean
  readonly limit: number
  /** `next` of the page before. */
  readonly after: string | null
}

/**
 * Attempts at a task: members of settled rounds with what was tried again before them. Not those of evaluations, held-out
 * splits and forks, nor of weights that a trainer went back behind.
 */
export interface TaskMemory {
  readonly taskDigest: Digest
  /** Null where lines are not told apart by it. */
  readonly runId: Id | null
  readonly harness: string | null
  readonly variant: string | null
  /** The weights that sampled first: number, and what the engine calls them. Number 0: nobody had announced them. */
  readonly version: { readonly ordinal: number; readonly label: string | null } | null
  /** All of them: `numbers`, `nulls`, `infra` and `stopped`. */
  readonly attempts: number
  /** Attempts with a reward. */
  readonly numbers: number
  /** Of `numbers`: with {@link passReward} or more. */
  readonly passed: number
  /** Of `numbers`; null without any. */
  readonly meanReward: number | null
  /** Population standard deviation; null without any. */
  readonly sdReward: number | null
  /** Ended by themselves, and have no number. */
  readonly nulls: number
  /** Something of ours or of the engine's failed or stood in the way. */
  readonly infra: number
  /** Were stopped under way. */
  readonly stopped: number
  /** Of `numbers` and `nulls`, as are turns; null without any. */
  readonly meanTokens: number | null
  readonly mostTokens: number | null
  readonly meanTurns: number | null
  /** Rows by what a trainer did with them; what it undid is not counted. */
  readonly uses: Readonly<Record<Disposition['outcome'], number>>
  /** When the last of the attempts settled or was judged. */
  readonly lastAt: number
  /** When a trainer last used a row; null: never, or all of it was undone. */
  readonly usedAt: number | null
}

export interface MemoryPage {
  readonly tasks: readonly TaskMemory[]
  /** Null: there are no more. */
  readonly next: string | null
}
