/** Reads of the log over one read-only connection. */
import type { Database } from 'better-sqlite3'
import { type Digest, type Event, type Id, PaddockError } from '../../core/index.ts'
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
import { readDigest, readId, selectOf, Statements, storedId, type StoredId, whole, wholeRows } from '../sqlite/index.ts'
import type { IntentFacts } from './facts.ts'
import type { Texts } from './bodies.ts'
import { cutColumns } from './columns.ts'
import { unpackBytes } from './codec.ts'
import { type Outcome, unpackOutcome } from './outcome.ts'
import { archivedTables, eventsTable, logTables, type RecordTable, sessionOfCall } from './schema.ts'
import { unpackSegmentList } from './segment-list.ts'
import { listedSegmentOf } from './segments.ts'
import { TextReader } from './texts.ts'
import type { CallEndRow, CallRow } from './table-rows.ts'
import { type ArchivedObject, type ArchivedSession, type SealedSession, sealSession } from './archived.ts'

/** A session of the log. */
export interface LoggedSession {
  readonly n: number
  readonly id: Id
  readonly rolloutId: Id | null
}

/** An archived session of the log. */
export interface ArchivedHere extends LoggedSession, ArchivedObject {
  /** Sessions that its rollout has by now. */
  readonly ofRollout: number
}

interface SessionRow {
  readonly n: number
  readonly record: string
}

const { calls: callsTable, callEnds, deliveries, sessionEnds, sessions: sessionsTable, supersessions } = logTables
const selectSession = selectOf(sessionsTable, 'WHERE id = ?', ['n'])
const selectCalls = selectOf(callsTable, 'WHERE session = ? ORDER BY seq', ['n'])
const selectEnd = selectOf(callEnds, 'WHERE call = ?')

/**
 * Facts of a session, read in one transaction: a consistent picture beside a live writer. Every record is checked against
 * its digest.
 */
export class LogReader {
  readonly #db: Database
  readonly #statements: Statements

  constructor(db: Database) {
    this.#db = db
    this.#statements = new Statements(db)
  }

  sessions(filter: { rolloutId?: Id | null; limit?: number; newestFirst?: boolean } = {}): readonly SessionRecord[] {
    const { rolloutId, limit = -1, newestFirst = false } = filter
    const where = rolloutId === undefined ? '' : rolloutId === null ? 'WHERE rollout IS NULL' : 'WHERE rollout = ?'
    const rest = `${where} ORDER BY n ${newestFirst ? 'DESC' : ''} LIMIT ?`
    const values = rolloutId === undefined || rolloutId === null ? [limit] : [storedId(rolloutId), limit]
    const rows = wholeRows<{ record: string }>(this.#statements, sessionsTable, rest, ...values)
    return rows.map((row) => parseOwn<SessionRecord>(row.record))
  }

  mark(): string {
    const row = this.#statements.get<{ generation: number; place: number }>(
      'SELECT generation, ingested_to AS place FROM journal',
    )
    return `${row?.generation ?? 0}.${row?.place ?? 0}`
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

  /** Throws `NOT_FOUND`. */
  sessionOfCall(callId: Id): Id {
    const row = this.#statements.get<{ id: StoredId }>(sessionOfCall, storedId(callId))
    if (row === undefined) throw new PaddockError('NOT_FOUND', `there is no call ${callId}`)
    return readId(row.id)
  }

  events({ rolloutId }: { rolloutId: Id | null }): readonly Event[] {
    if (rolloutId !== null) return this.#events('rollout', rolloutId)
    return this.#eventsWhere('rollout IS NULL AND session IS NULL')
  }

  /** In the order in which they came. */
  allEvents(): readonly Event[] {
    return this.#eventsWhere('true')
  }

  /** Throws `NOT_FOUND`, `STORE_CORRUPT`; `INTERNAL` for one that is archived. */
  session(id: Id, options: SessionReadOptions = {}): SessionLog {
    const found = this.find(id, options)
    if ('object' in found)
      throw new PaddockError('INTERNAL', `session ${id} is archived and was read without its object`)
    return found
  }

  /** A session, or where its records are. Throws `NOT_FOUND`, `STORE_CORRUPT`. */
  find(id: Id, options: SessionReadOptions = {}): SessionLog | ArchivedSession {
    return this.#db.transaction(() => this.#archived(id) ?? this.#session(id, options))()
  }

  /** Sessions that are not archived, behind row `after`, in order of opening. */
  unarchived(after: number): readonly LoggedSession[] {
    return this.#statements
      .all<{ n: number; id: StoredId; rollout: StoredId | null }>(
        'SELECT n, id, rollout FROM sessions WHERE n > ? AND n NOT IN (SELECT session FROM archived_sessions) ORDER BY n',
        after,
      )
      .map(({ n, id, rollout }) => ({ n, id: readId(id), rolloutId: rollout === null ? null : readId(rollout) }))
  }

  /** Of these sessions, those that are closed and whose calls have all ended. */
  finished(ids: readonly Id[]): readonly Id[] {
    return ids.filter(
      (id) =>
        this.#statements.get(
          `SELECT 1 FROM sessions JOIN session_ends ON session = n WHERE id = ? AND NOT EXISTS (SELECT 1 FROM calls
           WHERE calls.session = sessions.n AND NOT EXISTS (SELECT 1 FROM call_ends WHERE call = calls.n))`,
          storedId(id),
        ) !== undefined,
    )
  }

  /** Archived sessions behind row `after`, in order of opening. Throws `STORE_CORRUPT`. */
  archivedSessions(after: number, limit: number): readonly ArchivedHere[] {
    return this.#statements
      .all<ArchivedObject & { session: number; id: StoredId; rollout: StoredId | null; of_rollout: number }>(
        `SELECT a.*, s.id, s.rollout, CASE WHEN s.rollout IS NULL THEN 1 ELSE
           (SELECT count(*) FROM sessions o WHERE o.rollout = s.rollout) END AS of_rollout FROM archived_sessions a JOIN sessions s ON s.n = a.session
         WHERE a.session > ? ORDER BY a.session LIMIT ?`,
        after,
        limit,
      )
      .map((row) => {
        const { session: n, object, count, head } = whole(archivedTables.sessions, row)
        const rolloutId = row.rollout === null ? null : readId(row.rollout)
        return { n, id: readId(row.id), rolloutId, ofRollout: row.of_rollout, object, count, head }
      })
  }

  /** Which of these objects have the records of a session. */
  archivedAmong(objects: readonly Digest[]): readonly Digest[] {
    return this.#statements
      .all<{ object: Digest }>(
        'SELECT object FROM archived_sessions WHERE object IN (SELECT value FROM json_each(?))',
        JSON.stringify(objects),
      )
      .map(({ object }) => object)
  }

  /** Bytes to archive a session with. Null: it is archived already, or not finished. Throws `STORE_CORRUPT`. */
  seal(id: Id): SealedSession | null {
    if (this.finished([id]).length === 0) return null
    return this.#db.transaction(() => (this.#archived(id) === null ? sealSession(this.#statements, id) : null))()
  }

  #archived(id: Id): ArchivedSession | null {
    const session = this.#statements.get<{ n: number }>('SELECT n FROM sessions WHERE id = ?', storedId(id))?.n ?? 0
    const [row] = wholeRows<ArchivedObject>(this.#statements, archivedTables.sessions, 'WHERE session = ?', session)
    if (row === undefined) return null
    const { object, count, head } = row
    const named = (call: number): StoredId => {
      const found = this.#statements.get<{ id: StoredId }>('SELECT id FROM archived_calls WHERE n = ?', call)
      if (found === undefined) throw new PaddockError('STORE_CORRUPT', `an archived call of session ${id} is missing`)
      return found.id
    }
    const rest = (table: RecordTable): string => `WHERE ${table.session} ORDER BY nth`
    const told = wholeRows<{ call: number; delivery: Delivery }>(
      this.#statements,
      deliveries,
      rest(deliveries),
      session,
    )
    const replaced = wholeRows<{ call: number; by: StoredId }>(
      this.#statements,
      supersessions,
      rest(supersessions),
      session,
    )
    return {
      id,
      object,
      count,
      head,
      deliveries: told.map(({ call, delivery }) => [named(call), delivery]),
      supersessions: replaced.map(({ call, by }) => [named(call), by]),
      events: this.#events('session', id),
    }
  }

  #session(id: Id, options: SessionReadOptions): SessionLog {
    const row = this.#statements.get<SessionRow>(selectSession, storedId(id))
    if (row === undefined) throw new PaddockError('NOT_FOUND', `there is no session ${id}`)
    const { record } = whole(sessionsTable, row)
    const callRows = this.#statements.all<CallRow>(selectCalls, row.n)
    for (const call of callRows) whole(callsTable, call)
    const texts = new TextReader(this.#statements, callRows)
    const factsByText = new Map<Uint8Array, IntentFacts>()
    const aftermath = this.#aftermath(row.n)
    const listed: { readonly nth: number; readonly segments: readonly Segment[] }[] = []
    const spans: Span[] = []
    const calls = callRows.map((call): CallRecord => {
      const callId = readId(call.id)
      const wanted = options.bodies === undefined || options.bodies === 'all' || options.bodies.includes(callId)
      const intent = intentOf(call, id, wanted ? texts.read(call) : texts.readFacts(call), factsByText)
      const end = this.#statements.get<CallEndRow>(selectEnd, call.n)
      const delivery = aftermath.deliveries.get(call.n) ?? end?.delivery ?? 'unknown'
      const superseded = aftermath.superseded.has(call.n)
      if (end === undefined) return { intent, commit: null, delivery, superseded }
      whole(callEnds, end)
      const list = unpackSegmentList(end.segments)
      const unpacked = unpackOutcome(
        end.pack,
        list.map((segment) => segment.id),
        wanted,
      )
      const columns = cutColumns(list, columnsOf(end, unpacked))
      const segments = list.flatMap((segment, place) => {
        const [facts, own] = [unpacked.segments[place], columns[place]]
        if (facts === undefined || own === undefined) return []
        return [listedSegmentOf(segment, { sessionId: id, callId }, facts, own)]
      })
      listed.push({ nth: end.nth, segments })
      spans.push(...unpacked.spans)
      const { reply, replyMarks } = unpacked
      return {
        intent,
        commit: { callId, endedAt: end.ended_at, ...unpacked.facts, reply, replyMarks },
        delivery,
        superseded,
      }
    })
    const [closed] = wholeRows<{ at: number }>(this.#statements, sessionEnds, 'WHERE session = ?', row.n)
    return {
      session: parseOwn<SessionRecord>(record),
      closedAt: closed?.at ?? null,
      calls,
      // In the order in which calls ended, so that parents stand before children.
      segments: listed.toSorted((a, b) => a.nth - b.nth).flatMap(({ segments }) => segments),
      spans,
      events: this.#events('session', id),
    }
  }

  #events(column: 'rollout' | 'session', id: Id): readonly Event[] {
    return this.#eventsWhere(`${column} = ?`, storedId(id))
  }

  #eventsWhere(condition: string, ...values: readonly unknown[]): readonly Event[] {
    const rest = `WHERE ${condition} ORDER BY n`
    return wholeRows<{ event: string }>(this.#statements, eventsTable, rest, ...values).map((row) =>
      parseOwn<Event>(row.event),
    )
  }

  /** What was told of calls of a session after their ends; the last delivery counts. */
  #aftermath(session: number): {
    readonly deliveries: ReadonlyMap<number, Delivery>
    readonly superseded: ReadonlySet<number>
  } {
    const told = wholeRows<{ call: number; delivery: Delivery }>(
      this.#statements,
      deliveries,
      `WHERE ${deliveries.session} ORDER BY n`,
      session,
    )
    const superseded = wholeRows<{ call: number }>(
      this.#statements,
      supersessions,
      `WHERE ${supersessions.session}`,
      session,
    )
    return {
      deliveries: new Map(told.map(({ call, delivery }) => [call, delivery])),
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

function columnsOf(row: CallEndRow, unpacked: Outcome): Uint8Array {
  return row.columns === null ? unpacked.columns : unpackBytes(row.columns)
}

/** JSON that only this folder writes; `paddock fsck` checks that it still parses. */
function parseOwn<T>(text: string): T {
  return JSON.parse(text) as T
}
