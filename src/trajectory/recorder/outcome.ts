/**
 * What a call's end adds besides token columns, in one frame: outcome (JSON), reply marks, reply. Segment ids inside
 * the JSON are places in the commit's own list of segments wherever they can be.
 */
import { PaddockError } from '../../core/index.ts'
import type { CallCommit, ReplyMark, Segment, Span } from '../contract.ts'
import { packBytes, unpackBytes } from './codec.ts'
import { packMarks, unpackMarks } from './marks.ts'

const roles = ['system', 'developer', 'user', 'assistant', 'tool', 'unknown'] as const
const parts = ['content', 'scaffold', 'unknown'] as const

/** Facts of a segment that have no column. */
export type SegmentFacts = Pick<Segment, 'logprobKind' | 'policySpans' | 'replayOf'>

/** The commit without the columns of its segments. */
export interface Outcome {
  readonly facts: Omit<CallCommit, 'callId' | 'endedAt' | 'segments' | 'spans' | 'reply' | 'replyMarks'>
  readonly segments: readonly SegmentFacts[]
  readonly spans: readonly Span[]
  readonly replyMarks: readonly ReplyMark[]
  readonly reply: Uint8Array
}

/** Segment (place or id), start, end, role, part, source call. */
type StoredSpan = readonly [number | string, number, number, number, number, string | null]

interface StoredOutcome {
  readonly facts: Outcome['facts']
  readonly segments: readonly SegmentFacts[]
  readonly spans: readonly StoredSpan[]
}

/** Bytes of the `outcomes.pack` column. */
export function packOutcome(commit: CallCommit): Uint8Array {
  const { callId: _callId, endedAt: _endedAt, segments, spans, reply, replyMarks, ...facts } = commit
  const places = new Map(segments.map((segment, place) => [segment.id, place]))
  const stored: StoredOutcome = {
    facts,
    segments: segments.map(({ logprobKind, policySpans, replayOf }) => ({ logprobKind, policySpans, replayOf })),
    spans: spans.map((span) => [
      places.get(span.segmentId) ?? span.segmentId,
      span.start,
      span.end,
      roles.indexOf(span.role),
      parts.indexOf(span.part),
      span.sourceCallId,
    ]),
  }
  const json = Buffer.from(JSON.stringify(stored))
  const marks = packMarks(replyMarks)
  const head = Buffer.allocUnsafe(8)
  head.writeUInt32LE(json.byteLength, 0)
  head.writeUInt32LE(marks.byteLength, 4)
  return packBytes(Buffer.concat([head, json, marks, reply]))
}

/** The outcome again; `segmentIds` are the call's own segments in order. Throws `STORE_CORRUPT`. */
export function unpackOutcome(pack: Uint8Array, segmentIds: readonly string[], withReply = true): Outcome {
  const bytes = unpackBytes(pack)
  const head = new DataView(bytes.buffer, bytes.byteOffset)
  const jsonEnd = 8 + head.getUint32(0, true)
  const marksEnd = jsonEnd + head.getUint32(4, true)
  // Written by packOutcome above and by nothing else.
  const stored = JSON.parse(Buffer.from(bytes.buffer, 8, jsonEnd - 8).toString()) as StoredOutcome
  if (stored.segments.length !== segmentIds.length) {
    throw new PaddockError('STORE_CORRUPT', 'an outcome and its segments do not agree')
  }
  return {
    facts: stored.facts,
    segments: stored.segments,
    spans: stored.spans.map(([segment, start, end, role, part, sourceCallId]) => ({
      segmentId: typeof segment === 'string' ? segment : (segmentIds[segment] ?? ''),
      start,
      end,
      role: roles[role] ?? 'unknown',
      part: parts[part] ?? 'unknown',
      sourceCallId,
    })),
    replyMarks: withReply ? unpackMarks(bytes.subarray(jsonEnd, marksEnd)) : [],
    reply: withReply ? bytes.slice(marksEnd) : new Uint8Array(0),
  }
}
