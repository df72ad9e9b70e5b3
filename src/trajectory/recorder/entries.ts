/**
 * The facts of the log as journal entries: everything that a fact needs is worked out here, on the side that has it, so
 * that the writer thread only compresses and inserts.
 */
import type { Event, Id } from '../../core/index.ts'
import type { CallCommit, CallIntent, Delivery, Segment, SessionRecord } from '../contract/index.ts'
import type { Entry, ReadEntry } from '../journal/index.ts'
import type { StoredId } from '../sqlite/index.ts'
import type { EncodedTexts } from './bodies.ts'
import { beginCallHead, endCallHead, settleDeliveryHead } from './heads.ts'
import { outcomeParts } from './outcome.ts'
import { type ListedSegment, packSegmentList } from './segment-list.ts'
import { originPlace, segmentParts } from './segments.ts'

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

/** An entry of the log as it is written: its head as JSON, or as bytes (heads.ts). */
export interface LogEntry extends Entry {
  readonly head: LogHead | Uint8Array
}

/** The same as it is read. */
export interface ReadLogEntry extends ReadEntry {
  readonly head: LogHead
}

/** An intent whose texts are stored as `texts` says. */
export function intentEntry(intent: CallIntent, texts: EncodedTexts): LogEntry {
  const { id, sessionId: session, seq, startedAt, requestDigest } = intent
  const { base, depth, facts, body } = texts
  return {
    head: beginCallHead({ op: 'beginCall', id, session, seq, startedAt, requestDigest, base, depth, facts, body }),
    parts: [texts.sha256, texts.middles],
  }
}

/** Throws `STORE_CONFLICT` where the arrays of a segment do not agree. */
export function commitEntry(commit: CallCommit): LogEntry {
  const { json, marks, reply } = outcomeParts(commit)
  const parts = [packSegmentList(commit.segments.map(listed)), json, marks, reply]
  for (const segment of commit.segments) {
    const { ids, logprobs, flags } = segmentParts(segment)
    parts.push(ids)
    if (logprobs !== null) parts.push(logprobs)
    if (flags !== null) parts.push(flags)
  }
  return { head: endCallHead({ op: 'endCall', id: commit.callId, endedAt: commit.endedAt }), parts }
}

function listed({ id, tokens, origin, stopCut, logprobs, flags }: Segment): ListedSegment {
  return {
    id,
    length: tokens.length,
    origin: originPlace(origin),
    stopCut,
    logprobs: logprobs !== null,
    flags: flags !== null,
  }
}

/** What reached a client. */
export function deliveryEntry(id: Id, delivery: Delivery): LogEntry {
  return { head: settleDeliveryHead({ op: 'settleDelivery', id, delivery }), parts: [] }
}
