/**
 * The facts of the log as journal entries: everything that a fact needs is worked out here, on the side that has it, so
 * that the writer thread only compresses and inserts.
 */
import type { Event, Id } from '../../core/index.ts'
import type { CallCommit, CallIntent, Delivery, SessionRecord } from '../contract/index.ts'
import type { Entry } from '../journal/index.ts'
import type { EncodedTexts } from './bodies.ts'
import { outcomeParts } from './outcome.ts'
import { type ListedSegment, packSegmentList } from './segment-list.ts'
import { segmentParts } from './segments.ts'

/** What an entry says; its bytes are in the entry's parts, in the order told here. */
export type LogHead =
  | { readonly op: 'openSession'; readonly session: SessionRecord }
  | { readonly op: 'closeSession'; readonly id: Id; readonly at: number }
  /** Parts: SHA-256 of the body, {@link EncodedTexts.middles}. */
  | {
      readonly op: 'beginCall'
      readonly id: Id
      readonly session: Id
      readonly seq: number
      readonly startedAt: number
      readonly requestDigest: string
      readonly base: Id | null
      readonly depth: number
      readonly facts: EncodedTexts['facts']
      readonly body: EncodedTexts['body']
    }
  /** Parts: list of segments (segment-list.ts), outcome (JSON), marks, reply, then ids, logprobs and flags of each segment. */
  | { readonly op: 'endCall'; readonly id: Id; readonly endedAt: number }
  | { readonly op: 'settleDelivery'; readonly id: Id; readonly delivery: Delivery }
  | { readonly op: 'supersede'; readonly id: Id; readonly by: Id }
  | { readonly op: 'appendEvent'; readonly event: Event }

/** An entry of the log. */
export interface LogEntry extends Entry {
  readonly head: LogHead
}

/** The facts of an intent that are stored as JSON text, volatile ones in the middle. */
export type IntentFacts = Omit<CallIntent, 'id' | 'sessionId' | 'seq' | 'startedAt' | 'requestDigest' | 'body'>

/** The JSON text of an intent's facts, in memory of its own: it is kept as a base, and a pool would be kept with it. */
export function intentFacts(intent: CallIntent): Buffer {
  const { id: _id, sessionId: _session, seq: _seq, startedAt: _at, requestDigest: _digest, ...rest } = intent
  const { body: _body, headers, retryOf, ...stable } = rest
  const facts: IntentFacts = { ...stable, headers, retryOf }
  const text = JSON.stringify(facts)
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  bytes.write(text)
  return bytes
}

/** An intent whose texts are stored as `texts` says. */
export function intentEntry(intent: CallIntent, texts: EncodedTexts): LogEntry {
  const { id, sessionId: session, seq, startedAt, requestDigest } = intent
  const { base, depth, facts, body } = texts
  return {
    head: { op: 'beginCall', id, session, seq, startedAt, requestDigest, base, depth, facts, body },
    parts: [texts.sha256, texts.middles],
  }
}

/** Throws `STORE_CONFLICT` where the arrays of a segment do not agree. */
export function commitEntry(commit: CallCommit): LogEntry {
  const columns: Uint8Array[] = []
  const list = commit.segments.map((segment): ListedSegment => {
    const { origin, ids, logprobs, flags } = segmentParts(segment)
    columns.push(ids)
    if (logprobs !== null) columns.push(logprobs)
    if (flags !== null) columns.push(flags)
    const { id, stopCut } = segment
    const length = segment.tokens.length
    return { id, length, origin, stopCut, logprobs: logprobs !== null, flags: flags !== null }
  })
  return {
    head: { op: 'endCall', id: commit.callId, endedAt: commit.endedAt },
    parts: [packSegmentList(list), ...outcomeParts(commit), ...columns],
  }
}
