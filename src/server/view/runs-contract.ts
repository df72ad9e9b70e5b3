/** What the pages of runs over time, and of tasks, get. */
import type { Digest, Id } from '../../core/index.ts'
import type { NullCount, NullShare } from '../../trajectory/index.ts'

/** How far the viewer has read a run; of a large one, its first pages are of a part. */
export interface RunExtent {
  readonly rollouts: number
  readonly of: number
  /** Another one stands for other contents. */
  readonly version: number
  /** False while more is to be read, of what trainers were handed also. */
  readonly isWhole: boolean
}

/** Numbers over rollouts. Null: there is none. */
export interface Means {
  readonly rollouts: number
  readonly effective: number
  /** Over effective rollouts. */
  readonly meanReward: number | null
  /** Sampled tokens, over rollouts whose agent was done. */
  readonly meanTokens: number | null
  /** Part of the ended rollouts without a number that counts, from 0 to 1. */
  readonly nullShare: number | null
  /** Age of the weights when a trainer was handed the rollout, in announced weights. */
  readonly meanAge: number | null
}

/** A curve: a value for each of {@link CurvePage.steps}, null where nothing was said. */
export interface Curve {
  readonly name: string
  readonly values: readonly (number | null)[]
}

/** A run over time. */
export interface CurvePage {
  /** Steps of the trainer, thinned to at most 500; what a later incarnation undid is left out. */
  readonly steps: readonly number[]
  readonly allSteps: number
  readonly undone: number
  readonly curves: readonly Curve[]
  /** Curves that are not shown. */
  readonly left: number
  /** By weights that sampled, in order of announcing: what a trainer was handed. The newest 200. */
  readonly weights: readonly (Means & { readonly label: string; readonly ordinal: number | null })[]
  /** The run cut into equal parts, in order of making. */
  readonly parts: readonly Means[]
}

/** How rollouts of a task went under one harness, one run or one set of weights. */
export interface PassRate {
  /** With a reward of 1 or more, of the effective ones. */
  readonly passed: number
  readonly effective: number
  /** Ended, without a number that counts. */
  readonly without: number
  readonly running: number
}

/** A task of a run. */
export interface TaskLine extends PassRate {
  readonly digest: Digest
  readonly name: string
  readonly harnesses: Readonly<Record<string, PassRate>>
}

/** A part of a run's tasks, the hardest first. */
export interface TaskPage {
  readonly total: number
  readonly rows: readonly TaskLine[]
  readonly next: number | null
  readonly harnesses: readonly string[]
}

/** A task over runs, harnesses and weights. */
export interface TaskDetail {
  readonly digest: Digest
  readonly name: string
  readonly environment: string
  readonly instruction: string
  readonly all: PassRate
  readonly rows: readonly (PassRate & {
    readonly runId: Id
    readonly runName: string
    readonly runAt: number
    readonly harness: string
    /** What the engine called them, as a trainer was told; null: no trainer was handed these. */
    readonly weights: string | null
  })[]
  /** Rows that are not shown. */
  readonly left: number
  readonly read: RunExtent
}

/** The share of missing numbers of a task, or of weights. */
export type NullLine = NullCount & { readonly name: string }

/** The share of missing numbers of a run, with a part of its tasks. */
export interface NullPage {
  readonly total: number
  readonly rows: readonly NullLine[]
  readonly next: number | null
  readonly read: RunExtent
  readonly all: Omit<NullShare, 'tasks' | 'versions'>
  readonly versions: readonly NullLine[]
}
