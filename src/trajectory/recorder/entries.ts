/**
 * The facts of the log as journal entries: everything that a fact needs is worked out here, on the side that has it, so
 * that the writer thread only compresses and inserts.
 */
import type { Id } from '../../core/index.ts'
import type { CallCommit, CallIntent, Delivery, Segment } from '../contract/index.ts'
import type { Entry, ReadEntry } from '../journal/index.ts'
import type { EncodedTexts } from './bodies.ts'
import { beginCallHead, endCallHead, settleDeliveryHead } from './heads.ts'
import type { LogHead } from './log-head.ts'
import { outcomeParts } from './outcome.ts'
import { type ListedSegment, packSegmentList } from './segment-list.ts'
import { originPlace, segmentParts } from './segments.ts'

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
