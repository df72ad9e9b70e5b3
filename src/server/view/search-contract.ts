import type { Id } from '../../core/index.ts'

/** Where a text was found. */
export type SearchPlace =
  | 'id'
  | 'task'
  | 'label'
  | 'cause'
  | 'verdict'
  | 'prompt'
  | 'answer'
  | 'reasoning'
  | 'tool call'
  | 'tool result'
  | 'finding'
  | 'command'
  | 'event'

/** One place at which the words stand. */
export interface SearchHit {
  readonly where: SearchPlace
  /** What of it: a tool's name, a label's, a role. */
  readonly of: string
  readonly runId: Id | null
  readonly rolloutId: Id | null
  readonly task: string
  /** The call that it stands in; null: it is of the rollout. */
  readonly call: { readonly sessionId: Id; readonly seq: number } | null
  /** The event of the rollout that it stands in. */
  readonly event: number | null
  /** The words with what stands around them, cut at both ends. */
  readonly before: string
  readonly match: string
  readonly after: string
}

/** One step of a search: what was found in the part of the store that it looked at. */
export interface SearchPart {
  readonly hits: readonly SearchHit[]
  /** What this step looked at. */
  readonly looked: { readonly rollouts: number; readonly calls: number }
  /** Rollouts of the run, or of the store. */
  readonly of: number
  /** Hits that this step left out: one rollout has at most so many. */
  readonly left: number
  /** What to give as `from` for the next step; null: all was looked at. */
  readonly next: string | null
}
