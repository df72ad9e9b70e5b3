/**
 * What a call's end adds, in one frame: outcome (JSON), reply marks, token columns where they are small, reply. Segment
 * ids inside the JSON are places in the commit's own list of segments wherever they can be.
 */
import { type Id, PaddockError } from '../../core/index.ts'
import type { CallCommit, ReplyMark, Segment, Span } from '../contract/index.ts'
import { packBytes, unpackBytes } from './codec.ts'
import { markPairs, packMarks, pairsOf, unpackMarks } from './marks.ts'
import { joinReply, splitReply } from './replies.ts'

const roles = ['system', 'developer', 'user', 'assistant', 'tool', 'unknown'] as const
const parts = ['content', 'scaffold', 'unknown'] as const

/** Facts of a segment that stand in the outcome. */
export type SegmentFacts = Pick<Segment, 'choice' | 'parent' | 'logprobKind' | 'policySpans' | 'replayOf'>

/** A parent is a segment (place or id) and an offset. */
interface StoredSegment extends Omit<SegmentFacts, 'parent'> {
  readonly parent: readonly [number | string, number] | null
}

/** The commit without the columns of its segments. */
export interface Outcome {
  readonly facts: Omit<CallCommit, 'callId' | 'endedAt' | 'segments' | 'spans' | 'reply' | 'replyMarks'>
  readonly segments: readonly SegmentFacts[]
  readonly spans: readonly Span[]
  /** The token columns, where they are in this frame. */
  readonly columns: Uint8Array
  readonly replyMarks: readonly ReplyMark[]
  readonly reply: Uint8Array
}

/** Segment (place or id), start, end, role, part, source call. */
type StoredSpan = readonly [number | string, number, number, number, number, string | null]

interface StoredOutcome {
  readonly facts: Outcome['facts']
  readonly segments: readonly StoredSegment[]
  readonly spans: readonly StoredSpan[]
}

/** What {@link packOutcome} puts together: outcome (JSON), marks (pairs of doubles), reply. */
export interface OutcomeParts<Json = Uint8Array> {
  readonly json: Json
  readonly marks: Uint8Array
  readonly reply: Uint8Array
}

/** A commit without the columns of its segments. */
export function outcomeParts(commit: CallCommit): OutcomeParts<string> {
  const { segments } = commit
  const stored: StoredOutcome = {
    facts: {
      firstByteAt: commit.firstByteAt,
      outcome: commit.outcome,
      choices: commit.choices,
      promptLeaf: commit.promptLeaf,
      forks: commit.forks,
      claimedPromptTokens: commit.claimedPromptTokens,
      findings: commit.findings,
      status: commit.status,
      weightVersionBefore: commit.weightVersionBefore,
      weightVersionAfter: commit.weightVersionAfter,
    },
    segments: segments.map(({ choice, parent, logprobKind, policySpans, replayOf }) => ({
      choice,
      parent: parent === null ? null : [placeOf(parent.segmentId, segments), parent.offset],
      logprobKind,
      policySpans,
      replayOf,
    })),
    spans: commit.spans.map((span) => [
      placeOf(span.segmentId, segments),
      span.start,
      span.end,
      roles.indexOf(span.role),
      parts.indexOf(span.part),
      span.sourceCallId,
    ]),
  }
  return {
    json: JSON.stringify(stored),
    marks: markPairs(commit.replyMarks),
    reply: commit.reply,
  }
}

/** A segment of the commit by its place, another one by its id. */
function placeOf(id: Id, segments: readonly Segment[]): number | Id {
  for (let place = 0; place < segments.length; place += 1) if (segments[place]?.id === id) return place
  return id
}

/** Set in the first length where the reply is in pieces ({@link splitReply}) and the marks have no offsets. */
const inPieces = 2 ** 31

/** Set in the second length where token columns stand behind the marks, their own length before them. */
const withColumns = 2 ** 31

/** Where outcomes are put together before they are packed: memory of its own costs a short one more than the copy. */
const scratch = Buffer.allocUnsafeSlow(64 * 1024)

/** Bytes of the `call_ends.pack` column; `columns` are token columns that have no frame of their own. */
export function packOutcome({ json, marks, reply }: OutcomeParts, columns: Uint8Array): Uint8Array {
  const pairs = pairsOf(marks)
  const pieces = splitReply(reply, pairs)
  if (pieces !== null) for (let at = 0; at < pairs.length; at += 2) pairs[at] = 0
  const packedMarks = packMarks(pairs)
  const body = pieces ?? reply
  const columnsHead = columns.byteLength === 0 ? 0 : 4
  const size = 8 + json.byteLength + packedMarks.byteLength + columnsHead + columns.byteLength + body.byteLength
  const joined = size <= scratch.length ? scratch.subarray(0, size) : Buffer.allocUnsafe(size)
  joined.writeUInt32LE(json.byteLength + (pieces === null ? 0 : inPieces), 0)
  joined.writeUInt32LE(packedMarks.byteLength + (columnsHead === 0 ? 0 : withColumns), 4)
  joined.set(json, 8)
  let at = 8 + json.byteLength
  joined.set(packedMarks, at)
  at += packedMarks.byteLength
  if (columnsHead > 0) at = joined.writeUInt32LE(columns.byteLength, at)
  joined.set(columns, at)
  joined.set(body, at + columns.byteLength)
  return packBytes(joined)
}

/** The outcome again; `segmentIds` are the call's own segments in order. Throws `STORE_CORRUPT`. */
export function unpackOutcome(pack: Uint8Array, segmentIds: readonly string[], withReply = true): Outcome {
  const bytes = unpackBytes(pack)
  const head = new DataView(bytes.buffer, bytes.byteOffset)
  const first = head.getUint32(0, true)
  const jsonEnd = 8 + (first % inPieces)
  const second = head.getUint32(4, true)
  const marksEnd = jsonEnd + (second % withColumns)
  const columnsAt = marksEnd + (second >= withColumns ? 4 : 0)
  const columnsEnd = columnsAt + (second >= withColumns ? head.getUint32(marksEnd, true) : 0)
  // Written by packOutcome above and by nothing else.
  const stored = JSON.parse(Buffer.from(bytes.buffer, 8, jsonEnd - 8).toString()) as StoredOutcome
  if (stored.segments.length !== segmentIds.length) {
    throw new PaddockError('STORE_CORRUPT', 'an outcome and its segments do not agree')
  }
  const idOf = (segment: number | string): Id => (typeof segment === 'string' ? segment : (segmentIds[segment] ?? ''))
  return {
    facts: stored.facts,
    segments: stored.segments.map(({ parent, ...facts }) => ({
      ...facts,
      parent: parent === null ? null : { segmentId: idOf(parent[0]), offset: parent[1] },
    })),
    spans: stored.spans.map(([segment, start, end, role, part, sourceCallId]) => ({
      segmentId: idOf(segment),
      start,
      end,
      role: roles[role] ?? 'unknown',
      part: parts[part] ?? 'unknown',
      sourceCallId,
    })),
    columns: bytes.subarray(columnsAt, columnsEnd),
    ...(withReply
      ? unpackReply(unpackMarks(bytes.subarray(jsonEnd, marksEnd)), bytes.subarray(columnsEnd), first >= inPieces)
      : { replyMarks: [], reply: new Uint8Array(0) }),
  }
}

function unpackReply(
  marks: readonly ReplyMark[],
  bytes: Uint8Array,
  pieces: boolean,
): Pick<Outcome, 'replyMarks' | 'reply'> {
  if (!pieces) return { replyMarks: marks, reply: Uint8Array.from(bytes) }
  const { reply, offsets } = joinReply(bytes)
  if (offsets.length !== marks.length) {
    throw new PaddockError('STORE_CORRUPT', 'an outcome has other numbers of marks and pieces')
  }
  return { reply, replyMarks: marks.map(({ atMs }, place) => ({ offset: offsets[place] ?? 0, atMs })) }
}
