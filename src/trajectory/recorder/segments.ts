/** Segments as their call's end holds them, and as rows of `segments`, which stores of before schema 4 have. */
import { PaddockError } from '../../core/index.ts'
import type { Segment, SegmentOrigin } from '../contract/index.ts'
import { readId } from '../sqlite/index.ts'
import { unpackBytes, unpackIds, unpackLogprobs } from './codec.ts'
import { type ColumnShape, isInCallsFrame, type SegmentColumns } from './columns.ts'
import type { SegmentFacts } from './outcome.ts'
import type { ListedSegment } from './segment-list.ts'
import type { SegmentRow } from './table-rows.ts'

/** By place; only ever appended to. */
const origins: readonly SegmentOrigin[] = ['prompt', 'sampled', 'forced', 'replayed', 'imported']

/** What stands for an origin in the store. */
export function originPlace(origin: SegmentOrigin): number {
  return origins.indexOf(origin)
}

/** A segment's arrays as bytes. Throws `STORE_CONFLICT` when they do not agree. */
export function segmentParts(segment: Segment): {
  readonly ids: Uint8Array
  readonly logprobs: Uint8Array | null
  readonly flags: Uint8Array | null
} {
  const { tokens, logprobs, flags } = segment
  if (logprobs !== null && logprobs.length !== tokens.length) throw refused(segment, 'logprobs')
  if (flags !== null && flags.length !== tokens.length) throw refused(segment, 'flags')
  if (tokens.length === 0 && segment.origin !== 'sampled') {
    throw new PaddockError('STORE_CONFLICT', `segment ${segment.id} (${segment.origin}) has no tokens`)
  }
  return {
    ids: bytesOf(tokens),
    logprobs: logprobs === null ? null : bytesOf(logprobs),
    flags,
  }
}

/** Who a row's relatives are, by the integers of this file. */
export interface Relatives {
  readonly sessionId: string
  readonly callId: string | null
  readonly parentId: string | null
}

/** How a row's columns stand in the frame of its call; null where the row holds them itself. */
export function shapeOf(row: SegmentRow): ColumnShape | null {
  if (!isInCallsFrame(row.ids)) return null
  return { length: row.length, logprobs: row.logprobs !== null, flags: row.flags !== null }
}

/** What a row does not hold itself. */
export interface SegmentBeside {
  readonly facts: SegmentFacts
  /** From the frame of its call; null for a row that holds its columns itself. */
  readonly columns: SegmentColumns | null
}

/** The segment of a row. Throws `STORE_CORRUPT`. */
export function segmentOf(row: SegmentRow, relatives: Relatives, { facts, columns }: SegmentBeside): Segment {
  const origin = origins[row.origin]
  const id = readId(row.id)
  if (origin === undefined) throw new PaddockError('STORE_CORRUPT', `segment ${id} has unknown origin ${row.origin}`)
  const tokens = columns === null ? unpackIds(row.ids) : new Int32Array(columns.ids.buffer)
  const logprobs =
    columns === null
      ? row.logprobs === null
        ? null
        : unpackLogprobs(row.logprobs)
      : columns.logprobs === null
        ? null
        : new Float32Array(columns.logprobs.buffer)
  const flags = columns === null ? (row.flags === null ? null : unpackBytes(row.flags)) : columns.flags
  for (const [name, length] of [
    ['ids', tokens.length],
    ['logprobs', logprobs?.length ?? row.length],
    ['flags', flags?.length ?? row.length],
  ] as const) {
    if (length !== row.length) {
      throw new PaddockError('STORE_CORRUPT', `segment ${id} has ${length} ${name}, its length is ${row.length}`)
    }
  }
  return {
    id,
    sessionId: relatives.sessionId,
    callId: relatives.callId,
    choice: row.choice,
    parent: relatives.parentId === null ? null : { segmentId: relatives.parentId, offset: row.parent_offset ?? 0 },
    origin,
    tokens,
    logprobs,
    flags,
    logprobKind: facts.logprobKind,
    policySpans: facts.policySpans,
    replayOf: facts.replayOf,
    stopCut: row.stop_cut !== 0,
  }
}

/** A segment as its call's end tells it. Throws `STORE_CORRUPT`. */
export function listedSegmentOf(
  { id, origin: place, stopCut }: ListedSegment,
  relatives: Pick<Segment, 'sessionId' | 'callId'>,
  facts: SegmentFacts,
  columns: SegmentColumns,
): Segment {
  const origin = origins[place]
  if (origin === undefined) throw new PaddockError('STORE_CORRUPT', `segment ${id} has unknown origin ${place}`)
  return {
    id,
    ...relatives,
    choice: facts.choice ?? null,
    parent: facts.parent ?? null,
    origin,
    tokens: new Int32Array(columns.ids.buffer),
    logprobs: columns.logprobs === null ? null : new Float32Array(columns.logprobs.buffer),
    flags: columns.flags,
    logprobKind: facts.logprobKind,
    policySpans: facts.policySpans,
    replayOf: facts.replayOf,
    stopCut,
  }
}

function refused(segment: Segment, what: string): PaddockError {
  return new PaddockError('STORE_CONFLICT', `segment ${segment.id} has other numbers of tokens and ${what}`)
}

function bytesOf({ buffer, byteOffset, byteLength }: Int32Array | Float32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength)
}
