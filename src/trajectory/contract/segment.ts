/** Segments of the token tree, what their tokens are, and why a prompt did not extend one. */
import type { Id, LogprobKind, PolicySpan } from '../../core/index.ts'

export type SegmentOrigin = 'prompt' | 'sampled' | 'forced' | 'replayed' | 'imported'

/** Bits of {@link Segment.flags}. */
export const tokenFlag = { floored: 1, nan: 2, missing: 4 } as const

/**
 * An immutable run of token ids. `parent` null: a root. Otherwise it continues after the first `offset` tokens of the
 * parent segment (`0 < offset <= parent.tokens.length`), so that a fork needs no mutation.
 */
export interface Segment {
  readonly id: Id
  readonly sessionId: Id
  /** The call that brought it; null for imported ones. */
  readonly callId: Id | null
  /** Index of the choice, of sampled segments and of what replays them. */
  readonly choice: number | null
  readonly parent: { readonly segmentId: Id; readonly offset: number } | null
  readonly origin: SegmentOrigin
  /** Shape [T], T >= 1 except for an empty generation (T = 0) and what replays it. */
  readonly tokens: Int32Array
  /** Shape [T], natural log; null where no token of the segment has one. NaN exactly where flags say so. */
  readonly logprobs: Float32Array | null
  /** Shape [T], bits of {@link tokenFlag}; null: all clear. */
  readonly flags: Uint8Array | null
  readonly logprobKind: LogprobKind
  readonly policySpans: readonly PolicySpan[]
  /** For `replayed`: the segment of another session that these tokens are of, as it first came. */
  readonly replayOf: Id | null
  /** True for tokens behind a visible stop cut: never part of a later prompt. */
  readonly stopCut: boolean
}

/** Tokens `[start, end)` of a segment: whose they are, and whether they are content or template scaffold. */
export interface Span {
  readonly segmentId: Id
  readonly start: number
  readonly end: number
  readonly role: 'system' | 'developer' | 'user' | 'assistant' | 'tool' | 'unknown'
  readonly part: 'content' | 'scaffold' | 'unknown'
  readonly sourceCallId: Id | null
}

/** Why a prompt that should have extended an earlier path did not. */
export type DriftCause =
  | 'think_stripped'
  | 'json_reserialised'
  | 'boundary_merge'
  | 'template'
  | 'harness_rewrite'
  | 'context_edit'
  | 'injected_removed'
  | 'compaction'
  | 'parser'
  | 'retry'
  | 'truncated'
  | 'stop_cut'
  | 'multimodal'
  | 'ambiguous'
  | 'unknown'

/** One entry of the drift report. */
export interface Fork {
  readonly cause: DriftCause
  /** The call whose answer should have been extended. */
  readonly fromCallId: Id | null
  /** First differing position, counted in tokens from the root. */
  readonly position: number
  /** Ids around the difference, at most 16 each. */
  readonly expected: readonly number[]
  readonly got: readonly number[]
  /** Sampled tokens of the earlier path that lie behind the difference. */
  readonly tokensAffected: number
}
