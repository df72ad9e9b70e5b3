import type { Delivery } from '../contract/index.ts'
import type { StoredId } from '../sqlite/index.ts'

/** A row of `calls` without its pack. */
export interface CallRow {
  readonly n: number
  readonly id: StoredId
  readonly session: number
  readonly seq: number
  readonly started_at: number
  readonly request_digest: StoredId
  readonly base: number | null
  readonly depth: number
  readonly facts_prefix: number
  readonly facts_suffix: number
  readonly body_prefix: number
  readonly body_suffix: number
  readonly body_sha256: Uint8Array
  readonly pack: Uint8Array
}

/** A row of `segments`: schema 3 and before. */
export interface SegmentRow {
  readonly n: number
  readonly id: StoredId
  readonly session: number
  readonly call: number | null
  readonly choice: number | null
  readonly parent: number | null
  readonly parent_offset: number | null
  readonly origin: number
  readonly stop_cut: number
  readonly length: number
  readonly ids: Uint8Array
  readonly logprobs: Uint8Array | null
  readonly flags: Uint8Array | null
}

/** A row of `outcomes`: schema 3 and before. */
export interface OutcomeRow {
  readonly ended_at: number
  readonly pack: Uint8Array
  readonly columns: Uint8Array | null
}

/** A row of `call_ends`. */
export interface CallEndRow extends OutcomeRow {
  readonly nth: number
  readonly delivery: Delivery | null
  readonly segments: Uint8Array
}
