import type { Id, LogprobKind } from '../../core/index.ts'

/** Continuations of given ids, beside all conversations. */
export interface ProbeOrder {
  /** The call whose ids these are: the engine's replica that has them in its cache is asked first. */
  readonly of: Id
  readonly rolloutId: Id
  /** Shape [T], T >= 1. */
  readonly ids: Int32Array
  /** Null: the engine's own. */
  readonly model: string | null
  readonly k: number
  readonly maxTokens: number
  readonly temperature: number
  readonly signal: AbortSignal
}

/** One continuation. */
export interface Continuation {
  readonly index: number
  readonly text: string
  readonly ids: readonly number[]
  /** Shape [T], natural log; null where the engine gave no number. */
  readonly logprobs: readonly (number | null)[]
  readonly finishReason: string | null
}

/** What came of a probe. */
export interface ProbeAnswer {
  /** The call that it is recorded as, and its session. */
  readonly callId: Id
  readonly sessionId: Id
  readonly kind: LogprobKind
  /** Null where nobody tells, and where the weights changed on the way. */
  readonly weightVersion: string | null
  /** The weights changed while it was sampled. */
  readonly mixed: boolean
  readonly continuations: readonly Continuation[]
}
