/** Segments as table rows. */
import { PaddockError } from '../../core/index.ts'
import type { Segment, SegmentOrigin } from '../contract.ts'
import { readId } from '../sqlite/index.ts'
import { packBytes, packNumbers, unpackBytes, unpackIds, unpackLogprobs } from './codec.ts'
import type { SegmentFacts } from './outcome.ts'
import type { SegmentRow } from './table-rows.ts'

/** By place; only ever appended to. */
const origins: readonly SegmentOrigin[] = ['prompt', 'sampled', 'forced', 'replayed', 'imported']

/** The columns that a segment itself decides. Throws `STORE_CONFLICT` when its arrays do not agree. */
export function segmentColumns(segment: Segment): {
  readonly origin: number
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
    origin: origins.indexOf(segment.origin),
    ids: packNumbers(tokens),
    logprobs: logprobs === null ? null : packNumbers(logprobs),
    flags: flags === null ? null : packBytes(flags),
  }
}

/** Who a row's relatives are, by the integers of this file. */
export interface Relatives {
  readonly sessionId: string
  readonly callId: string | null
  readonly parentId: string | null
}

/** The segment of a row. Throws `STORE_CORRUPT`. */
export function segmentOf(row: SegmentRow, relatives: Relatives, facts: SegmentFacts): Segment {
  const origin = origins[row.origin]
  const id = readId(row.id)
  if (origin === undefined) throw new PaddockError('STORE_CORRUPT', `segment ${id} has unknown origin ${row.origin}`)
  const tokens = unpackIds(row.ids)
  const logprobs = row.logprobs === null ? null : unpackLogprobs(row.logprobs)
  const flags = row.flags === null ? null : unpackBytes(row.flags)
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

function refused(segment: Segment, what: string): PaddockError {
  return new PaddockError('STORE_CONFLICT', `segment ${segment.id} has other numbers of tokens and ${what}`)
}
