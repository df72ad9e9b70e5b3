/** Reads of the log over one read-only connection. */
import type { Database } from 'better-sqlite3'
import { type Event, type Id, PaddockError } from '../../core/index.ts'
import type {
  CallIntent,
  CallRecord,
  Delivery,
  Segment,
  SessionKey,
  SessionLog,
  SessionReadOptions,
  SessionRecord,
  Span,
} from '../contract/index.ts'
import { readDigest, readId, Statements, storedId, type StoredId } from '../sqlite/index.ts'
import type { IntentFacts } from './facts.ts'
import type { Texts } from './bodies.ts'
import { cutColumns } from './columns.ts'
import { unpackBytes } from './codec.ts'
import { type Outcome, unpackOutcome } from './outcome.ts'
import { unpackSegmentList } from './segment-list.ts'
import { listedSegmentOf, type SegmentBeside, segmentOf, shapeOf } from './segments.ts'
import { TextReader } from './texts.ts'
import type { CallEndRow, CallRow, OutcomeRow, SegmentRow } from './table-rows.ts'

interface SessionRow {
  readonly n: number
  readonly record: string
  readonly closed_at: number | null
}

/** Facts of a session, read in one transaction: a consistent picture beside a live writer. */
export class LogReader {
  readonly #db: Database
  readonly #statements: Statements

  constructor(db: Database) {
    this.#db = db
    this.#statements = new Statements(db)
  }

  sessions(filter: { rolloutId?: Id; limit?: number } = {}): readonly SessionRecord[] {
    const { rolloutId, limit = -1 } = filter
    const rows =
      rolloutId === undefined
        ? this.#statements.all<{ record: string }>('SELECT record FROM sessions ORDER BY n LIMIT ?', limit)
        : this.#statements.all<{ record: string }>(
            'SELECT record FROM sessions WHERE rollout = ? ORDER BY n LIMIT ?',
            storedId(rolloutId),
            limit,
          )
    return rows.map((row) => parseOwn<SessionRecord>(row.record))
  }

  sessionKeys(limit: number): readonly SessionKey[] {
    return this.#statements
      .all<{ id: StoredId; key: string; labels: string; closed: number }>(
        `SELECT id, json_extract(record, '$.keyDigest') AS key, json_extract(record, '$.labels') AS labels,
           EXISTS (SELECT 1 FROM session_ends WHERE session = n) AS closed FROM sessions ORDER BY n DESC LIMIT ?`,
        limit,
      )
      .map((row) => ({
        id: readId(row.id),
        keyDigest: row.key,
        labels: parseOwn<SessionKey['labels']>(row.labels),
        closed: row.closed !== 0,
      }))
  }

  events(filter: { rolloutId: Id }): readonly Event[] {
    return this.#statements
      .all<{ event: string }>('SELECT event FROM events WHERE rollout = ? ORDER BY n', storedId(filter.rolloutId))
      .map((row) => parseOwn<Event>(row.event))
  }

  /** Throws `NOT_FOUND`, `STORE_CORRUPT`. */
  session(id: Id, options: SessionReadOptions = {}): SessionLog {
    return this.#db.transaction(() => this.#session(id, options))()
  }

  #session(id: Id, options: SessionReadOptions): SessionLog {
    const row = this.#statements.get<SessionRow>(
      `SELECT n, record, (SELECT at FROM session_ends WHERE session = n) AS closed_at FROM sessions WHERE id = ?`,
      storedId(id),
    )
    if (row === undefined) throw new PaddockError('NOT_FOUND', `there is no session ${id}`)
    const callRows = this.#statements.all<CallRow>('SELECT * FROM calls WHERE session = ? ORDER BY seq', row.n)
    const segmentRows = this.#statements.all<SegmentRow>('SELECT * FROM segments WHERE session = ? ORDER BY n', row.n)
    const callIds = new Map(callRows.map((call) => [call.n, readId(call.id)]))
    const ownSegments = Map.groupBy(segmentRows, (segment) => segment.call)
    const texts = new TextReader(this.#statements)
    const factsByText = new Map<Uint8Array, IntentFacts>()
    const aftermath = this.#aftermath(row.n)
    const beside = new Map<number, SegmentBeside>()
    const listed: { readonly nth: number; readonly segments: readonly Segment[] }[] = []
    const spans: Span[] = []
    const calls = callRows.map((call): CallRecord => {
      const callId = readId(call.id)
      const wanted = options.bodies === undefined || options.bodies === 'all' || options.bodies.includes(callId)
      const intent = intentOf(call, id, wanted ? texts.read(call) : texts.readFacts(call), factsByText)
      const end = this.#statements.get<CallEndRow>('SELECT * FROM call_ends WHERE call = ?', call.n)
      const outcome = end ?? this.#oldOutcome(call.n)
      const delivery = aftermath.deliveries.get(call.n) ?? end?.delivery ?? 'unknown'
      const superseded = aftermath.superseded.has(call.n)
      if (outcome === undefined) return { intent, commit: null, delivery, superseded }
      let unpacked: Outcome
      if (end === undefined) {
        const own = ownSegments.get(call.n) ?? []
        unpacked = unpackOutcome(
          outcome.pack,
          own.map((segment) => readId(segment.id)),
          wanted,
        )
        const columns = cutColumns(
          own.flatMap((segment) => shapeOf(segment) ?? []),
          columnsOf(outcome, unpacked),
        )
        for (const [place, segment] of own.entries()) {
          const facts = unpacked.segments[place]
          if (facts !== undefined) beside.set(segment.n, { facts, columns: columns[place] ?? null })
        }
      } else {
        const list = unpackSegmentList(end.segments)
        unpacked = unpackOutcome(
          end.pack,
          list.map((segment) => segment.id),
          wanted,
        )
        const columns = cutColumns(list, columnsOf(outcome, unpacked))
        const segments = list.flatMap((segment, place) => {
          const [facts, own] = [unpacked.segments[place], columns[place]]
          if (facts === undefined || own === undefined) return []
          return [listedSegmentOf(segment, { sessionId: id, callId }, facts, own)]
        })
        listed.push({ nth: end.nth, segments })
      }
      spans.push(...unpacked.spans)
      const { reply, replyMarks } = unpacked
      return {
        intent,
        commit: { callId, endedAt: outcome.ended_at, ...unpacked.facts, reply, replyMarks },
        delivery,
        superseded,
      }
    })
    return {
      session: parseOwn<SessionRecord>(row.record),
      closedAt: row.closed_at,
      calls,
      // In the order in which calls ended, so that parents stand before children.
      segments: [
        ...this.#segments(segmentRows, id, callIds, beside),
        ...listed.toSorted((a, b) => a.nth - b.nth).flatMap(({ segments }) => segments),
      ],
      spans,
      events: this.#statements
        .all<{ event: string }>('SELECT event FROM events WHERE session = ? ORDER BY n', storedId(id))
        .map((event) => parseOwn<Event>(event.event)),
    }
  }

  #oldOutcome(call: number): OutcomeRow | undefined {
    return this.#statements.get<OutcomeRow>('SELECT ended_at, pack, columns FROM outcomes WHERE call = ?', call)
  }

  #segments(
    rows: readonly SegmentRow[],
    sessionId: Id,
    callIds: ReadonlyMap<number, Id>,
    beside: ReadonlyMap<number, SegmentBeside>,
  ): readonly Segment[] {
    const ids = new Map(rows.map((row) => [row.n, readId(row.id)]))
    return rows.map((row) => {
      const held = beside.get(row.n)
      if (held === undefined) {
        throw new PaddockError('STORE_CORRUPT', `segment ${readId(row.id)} belongs to no committed call`)
      }
      const parentId = row.parent === null ? null : (ids.get(row.parent) ?? this.#foreignSegment(row.parent))
      const callId = row.call === null ? null : (callIds.get(row.call) ?? null)
      return segmentOf(row, { sessionId, callId, parentId }, held)
    })
  }

  /** A parent in the session that this one was forked from. */
  #foreignSegment(n: number): Id {
    const row = this.#statements.get<{ id: StoredId }>('SELECT id FROM segments WHERE n = ?', n)
    if (row === undefined) throw new PaddockError('STORE_CORRUPT', `segment ${n} is missing under its children`)
    return readId(row.id)
  }

  /** What was told of calls of a session after their ends; the last delivery counts. */
  #aftermath(session: number): {
    readonly deliveries: ReadonlyMap<number, Delivery>
    readonly superseded: ReadonlySet<number>
  } {
    const deliveries = this.#statements.all<{ call: number; delivery: Delivery }>(
      `SELECT call, delivery FROM deliveries WHERE call IN (SELECT n FROM calls WHERE session = ?) ORDER BY n`,
      session,
    )
    const superseded = this.#statements.all<{ call: number }>(
      'SELECT call FROM supersessions WHERE call IN (SELECT n FROM calls WHERE session = ?)',
      session,
    )
    return {
      deliveries: new Map(deliveries.map(({ call, delivery }) => [call, delivery])),
      superseded: new Set(superseded.map(({ call }) => call)),
    }
  }
}

/** `factsByText`: what was parsed before; calls mostly have the same facts, and the same bytes of them. */
function intentOf(call: CallRow, sessionId: Id, texts: Texts, factsByText: Map<Uint8Array, IntentFacts>): CallIntent {
  let facts = factsByText.get(texts.facts)
  if (facts === undefined) {
    facts = parseOwn<IntentFacts>(Buffer.from(texts.facts).toString())
    factsByText.set(texts.facts, facts)
  }
  return {
    id: readId(call.id),
    sessionId,
    seq: call.seq,
    startedAt: call.started_at,
    requestDigest: readDigest(call.request_digest),
    ...facts,
    body: texts.body,
  }
}

function columnsOf(row: OutcomeRow, unpacked: Outcome): Uint8Array {
  return row.columns === null ? unpacked.columns : unpackBytes(row.columns)
}

/** JSON that only this folder writes; `paddock fsck` checks that it still parses. */
function parseOwn<T>(text: string): T {
  return JSON.parse(text) as T
}
