/** What an entry of the log says: its head, as it is written and as it is read. */
import type { Event, Id } from '../../core/index.ts'
import type { Delivery, SessionRecord } from '../contract/index.ts'
import type { StoredId } from '../sqlite/index.ts'
import type { EncodedTexts } from './bodies.ts'

/** An intent. Parts: SHA-256 of the body, {@link EncodedTexts.middles}. */
export interface BeginCall<AnyId = Id> {
  readonly op: 'beginCall'
  readonly id: AnyId
  readonly session: AnyId
  readonly seq: number
  readonly startedAt: number
  readonly requestDigest: AnyId
  readonly base: AnyId | null
  readonly depth: number
  readonly facts: EncodedTexts['facts']
  readonly body: EncodedTexts['body']
}

/**
 * Parts: list of segments (segment-list.ts), outcome (JSON), marks, reply, then ids, logprobs and flags of each segment.
 */
export interface EndCall<AnyId = Id> {
  readonly op: 'endCall'
  readonly id: AnyId
  readonly endedAt: number
}

export interface SettleDelivery<AnyId = Id> {
  readonly op: 'settleDelivery'
  readonly id: AnyId
  readonly delivery: Delivery
}

/** What an entry says, as it is read: ids and digests as text or as column values. */
export type LogHead =
  | { readonly op: 'openSession'; readonly session: SessionRecord }
  | { readonly op: 'closeSession'; readonly id: Id; readonly at: number }
  | BeginCall<StoredId>
  | EndCall<StoredId>
  | SettleDelivery<StoredId>
  | { readonly op: 'supersede'; readonly id: Id; readonly by: Id }
  | { readonly op: 'appendEvent'; readonly event: Event }
  /** Whole sessions of another store, all or nothing. Parts: a frame for each of their facts. */
  | { readonly op: 'takeIn' }
