import type { Delivery } from '../contract/index.ts'
import type { StoredId } from '../sqlite/index.ts'

/** A row of `calls`. */
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

/** A row of `call_ends`. */
export interface CallEndRow {
  readonly nth: number
  readonly ended_at: number
  readonly delivery: Delivery | null
  readonly segments: Uint8Array
  readonly pack: Uint8Array
  readonly columns: Uint8Array | null
}
