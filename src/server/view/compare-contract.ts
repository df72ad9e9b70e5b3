/** What the pages that set two rollouts or two runs side by side get. */
import type { Digest, Id, RolloutEnd, VerdictStatus } from '../../core/index.ts'
import type { PassRate } from './runs-contract.ts'

/** One of two rollouts. */
export interface RolloutSide {
  readonly id: Id
  readonly runId: Id
  readonly task: string
  readonly harness: string
  readonly end: RolloutEnd | null
  readonly status: VerdictStatus | null
  readonly reward: number | null
  /** Its agent's session; null: no model call reached Paddock. */
  readonly sessionId: Id | null
  /** Calls of its conversation. */
  readonly calls: number
}

/** Two calls that stand at the same place of two conversations. */
export interface CallPair {
  /** Null: the conversation ended before. */
  readonly a: number | null
  readonly b: number | null
  readonly isPromptSame: boolean
  readonly isAnswerSame: boolean
}

/** Two rollouts side by side. */
export interface RolloutComparison {
  readonly a: RolloutSide
  readonly b: RolloutSide
  readonly isTaskSame: boolean
  /** `tokens`: prompts and answers by their ids. `words`: the ids are of two tokenizers or missing, so answers alone are compared, by their text. */
  readonly by: 'tokens' | 'words'
  /** Calls at the beginning that are the same. */
  readonly same: number
  /** The first 2,000. */
  readonly pairs: readonly CallPair[]
  /** Where the first pair that is not the same begins to differ, in tokens or characters of its prompt or answer; null: nowhere, or one of both ended. */
  readonly position: number | null
}

/** A task in two runs. */
export interface TaskPair {
  readonly digest: Digest
  readonly name: string
  /** Null: the run did not have it. */
  readonly a: (PassRate & { readonly mean: number | null }) | null
  readonly b: (PassRate & { readonly mean: number | null }) | null
  /** `gained`: half or more of its rollouts passed in `b` and fewer in `a`; `lost`: the other way round; null: neither, or nobody knows. */
  readonly flip: 'gained' | 'lost' | null
}

/** One of two runs. */
export interface RunSide {
  readonly id: Id
  readonly name: string
  readonly createdAt: number
  /** Mean, over tasks with a number in both runs, of the task's mean reward. */
  readonly pairedMean: number | null
  /** Sampled tokens, over rollouts whose agent was done. */
  readonly meanTokens: number | null
}

/** Two runs side by side. */
export interface RunComparison {
  readonly a: RunSide
  readonly b: RunSide
  /** Tasks with a number in both. */
  readonly paired: number
  readonly gained: number
  readonly lost: number
  readonly onlyA: number
  readonly onlyB: number
  readonly total: number
  /** Flips first, then by how far the means are apart. */
  readonly rows: readonly TaskPair[]
  readonly next: number | null
  /** Settings that are not the same, by path, as JSON; null: not set. */
  readonly settings: readonly { readonly path: string; readonly a: string | null; readonly b: string | null }[]
  /** Differences of settings that are not shown. */
  readonly settingsLeft: number
}
