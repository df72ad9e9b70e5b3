/** Calls: intent, answer, outcome. */
import type { CallClass, Digest, Id, Lineage, SamplingParams } from '../../core/index.ts'
import type { Fork, Segment, Span } from './segment.ts'
import type { TokenStrategy } from './session.ts'

/** The intent of a call: stored before any response byte leaves. */
export interface CallIntent {
  readonly id: Id
  readonly sessionId: Id
  /** 0-based, strictly increasing in order of arrival within the session. */
  readonly seq: number
  readonly startedAt: number
  readonly dialect: 'chat' | 'responses' | 'messages' | 'gemini' | 'completions' | 'embeddings'
  readonly path: string
  readonly streamed: boolean
  /** SHA-256 of the request without `stream`, `stream_options`, `cache_control`, metadata: what a retry repeats. */
  readonly requestDigest: Digest
  /** The call that this one repeats, where the retry rule (I6) says so. */
  readonly retryOf: Id | null
  readonly lineage: Lineage
  readonly callClass: CallClass
  readonly strategy: TokenStrategy
  readonly asked: SamplingParams
  readonly used: SamplingParams
  readonly fingerprint: Digest | null
  /** Request headers without credentials, lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** The client's request body, byte for byte. The recorder stores it as a delta on the session's earlier bodies. */
  readonly body: Uint8Array
}

/** How a call ended. `interrupted` is what recovery writes for intents without an end. */
export type CallOutcome =
  | { readonly kind: 'complete' }
  | { readonly kind: 'client_gone'; readonly upstream: 'finished' | 'aborted' }
  | { readonly kind: 'engine_error'; readonly code: string; readonly status: number | null; readonly message: string }
  | { readonly kind: 'refused'; readonly code: string; readonly message: string }
  | { readonly kind: 'interrupted' }

/** What reached the client. `echoed`: a later request of the session contained the answer. */
export type Delivery = 'sent' | 'echoed' | 'unknown'

/** One server-sent event or body chunk as it left the engine adapter: byte range in the reply body and time. */
export interface ReplyMark {
  readonly offset: number
  /** Milliseconds after the call's start. */
  readonly atMs: number
}

/** One of the n answers of a call. */
export interface ChoiceRecord {
  readonly index: number
  readonly finishReason: string | null
  /** The sampled segment of this choice; null where the engine gave no ids. */
  readonly segmentId: Id | null
  /** The message as the client saw it, JSON text. */
  readonly message: string
  /**
   * Number of sampled tokens that the engine's usage claims, null when it says nothing. Of several choices, whose sum alone
   * the usage tells, each claims its ids and the first one what is missing.
   */
  readonly claimedTokens: number | null
}

/** Everything that a finished call adds, in one transaction. */
export interface CallCommit {
  readonly callId: Id
  readonly endedAt: number
  readonly firstByteAt: number | null
  readonly outcome: CallOutcome
  readonly choices: readonly ChoiceRecord[]
  readonly segments: readonly Segment[]
  readonly spans: readonly Span[]
  /** The segment at whose end the prompt of this call stands, null where the engine gave no prompt ids. */
  readonly promptLeaf: Id | null
  readonly forks: readonly Fork[]
  /** Number of prompt tokens that the engine's usage claims. */
  readonly claimedPromptTokens: number | null
  /** Integrity findings: those of `wireFaults`, which void the answer, and others: `missing_ids`, `missing_logprobs`, … */
  readonly findings: readonly string[]
  /** HTTP status sent to the client, null when none was. */
  readonly status: number | null
  /** The reply as the client got it, canonical bytes (SSE text or JSON). */
  readonly reply: Uint8Array
  readonly replyMarks: readonly ReplyMark[]
  readonly weightVersionBefore: string | null
  readonly weightVersionAfter: string | null
}

/** A call as read back. */
export interface CallRecord {
  readonly intent: CallIntent
  /** Null while in flight. */
  readonly commit: Omit<CallCommit, 'segments' | 'spans'> | null
  readonly delivery: Delivery
  /** True for an answer that a retry replaced and that never reached the client: kept, never trained. */
  readonly superseded: boolean
}
