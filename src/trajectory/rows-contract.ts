/**
 * From a token tree to rows: what a trainer gets. Exporters see only these types and `core`.
 */
import type { CallClass, Digest, Id, LogprobKind, PolicySpan, SamplingParams, Verdict } from '../core/index.ts'
import type { GroupRecord, RolloutView, SegmentOrigin } from './contract.ts'

/** Where every sampled token goes: exactly one bucket (invariant I4). */
export type Bucket =
  | { readonly kind: 'trainable' }
  | { readonly kind: 'masked'; readonly reason: MaskReason }
  | { readonly kind: 'not_exported'; readonly reason: DropReason }

export type MaskReason =
  /** Trained in another row that shares this prefix. */
  | 'owned_elsewhere'
  /** The call's class is not selected for training. */
  | 'class'
  | 'missing_logprob'
  | 'stop_cut'
  | 'role'

export type DropReason =
  | 'verdict_null'
  | 'tainted'
  | 'rollout_unfinished'
  | 'superseded'
  | 'undelivered_sibling'
  | 'class'
  | 'role'
  | 'logprob_kind'
  | 'group_dropped'
  | 'filtered'

/** One segment as it lies in a row. */
export interface RowSegment {
  readonly segmentId: Id
  readonly origin: SegmentOrigin
  readonly callId: Id | null
  readonly callClass: CallClass
  readonly choice: number | null
  /** Position in the row, tokens `[start, end)`. */
  readonly start: number
  readonly end: number
  readonly trained: boolean
  readonly maskReason: MaskReason | null
}

/** A path as a trainer gets it. All arrays have shape [T]. */
export interface Row {
  /** `<rollout id>:<leaf segment id>`. */
  readonly id: string
  readonly rolloutId: Id
  readonly sessionId: Id
  readonly groupId: Id
  readonly taskDigest: Digest
  readonly leafCallId: Id | null
  readonly tokens: Int32Array
  /** 1: sampled by the policy and to be trained. */
  readonly mask: Uint8Array
  /** 0 where mask is 0. */
  readonly logprobs: Float32Array
  readonly logprobKind: LogprobKind
  /** Tokens before the first sampled one. */
  readonly promptLength: number
  readonly segments: readonly RowSegment[]
  /** In row positions. */
  readonly policySpans: readonly PolicySpan[]
  /** Of the calls in the row, in order. */
  readonly sampling: readonly { readonly callId: Id; readonly params: SamplingParams }[]
  readonly finishReason: string | null
  readonly fingerprint: Digest | null
}

/** A rollout's rows with its verdict; what an exporter receives. */
export interface ExportRollout {
  readonly rollout: RolloutView
  readonly group: GroupRecord
  readonly taskName: string
  readonly environment: string
  readonly instruction: string
  /** The verdict in force. */
  readonly verdict: Verdict | null
  readonly rows: readonly Row[]
  /** Weight of each row by the export's rule, same order. */
  readonly rowWeights: readonly number[]
  /** The conversation as messages per row, same order: JSON texts of chat messages, and the offered tools. */
  readonly conversations: readonly { readonly messages: readonly string[]; readonly tools: string | null }[]
}
