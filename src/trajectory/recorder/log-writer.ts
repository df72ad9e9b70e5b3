/** Writes entries into the log, one connection, no transaction of its own: whoever takes the journal in groups them. */
import type { Database } from 'better-sqlite3'
import { type Id, PaddockError } from '../../core/index.ts'
import { Statements, storedDigest, storedId, storedIdOrNull } from '../sqlite/index.ts'
import { packBytes } from './codec.ts'
import { inCallsFrame, joinColumns } from './columns.ts'
import type { LogEntry, LogHead } from './entries.ts'
import { packOutcome } from './outcome.ts'

/** Rows that later entries will name, kept by their ids; the database knows the others. */
const maxKnown = 16_384

type Head<Op extends LogHead['op']> = Extract<LogHead, { op: Op }>
type Parts = readonly Uint8Array[]

/** Token columns of fewer bytes are in the frame of the outcome. */
const worthOwnFrame = 2048

/** Inserts what an entry says. Entries were checked before they were written; what does not fit all the same throws. */
export class LogWriter {
  readonly #statements: Statements
  readonly #sessions = new Known<number>()
  readonly #calls = new Known<{ readonly n: number; readonly session: number }>()
  readonly #segments = new Known<number>()

  constructor(db: Database) {
    this.#statements = new Statements(db)
  }

  write({ head, parts }: LogEntry): void {
    switch (head.op) {
      case 'openSession':
        return this.#openSession(head)
      case 'closeSession':
        return this.#closeSession(head)
      case 'beginCall':
        return this.#beginCall(head, parts)
      case 'commitCall':
        return this.#commitCall(head, parts)
      case 'settleDelivery':
        return void this.#statements.run(
          'INSERT INTO deliveries (call, delivery) VALUES (?, ?)',
          this.#call(head.id).n,
          head.delivery,
        )
      case 'supersede':
        return void this.#statements.run(
          'INSERT INTO supersessions (call, by) VALUES (?, ?)',
          this.#call(head.id).n,
          storedId(head.by),
        )
      case 'appendEvent':
        return this.#appendEvent(head)
    }
  }

  /** Forgets what was kept in memory, after a transaction was rolled back. */
  forgetAll(): void {
    this.#sessions.clear()
    this.#calls.clear()
    this.#segments.clear()
  }

  #openSession({ session }: Head<'openSession'>): void {
    const n = this.#statements.run(
      'INSERT INTO sessions (id, rollout, created_at, record) VALUES (?, ?, ?, ?)',
      storedId(session.id),
      storedIdOrNull(session.rolloutId),
      session.createdAt,
      JSON.stringify(session),
    )
    this.#sessions.keep(session.id, n)
  }

  #closeSession({ id, at }: Head<'closeSession'>): void {
    this.#statements.run('INSERT INTO session_ends (session, at) VALUES (?, ?)', this.#session(id), at)
  }

  #beginCall(head: Head<'beginCall'>, [sha256, middles]: Parts): void {
    if (middles === undefined) throw new PaddockError('STORE_CORRUPT', `the intent of ${head.id} has no texts`)
    const session = this.#session(head.session)
    const n = this.#statements.run(
      `INSERT INTO calls (id, session, seq, started_at, request_digest, base, depth, facts_prefix, facts_suffix,
         body_prefix, body_suffix, body_sha256, pack) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      storedId(head.id),
      session,
      head.seq,
      head.startedAt,
      storedDigest(head.requestDigest),
      head.base === null ? null : this.#call(head.base).n,
      head.depth,
      head.facts.prefix,
      head.facts.suffix,
      head.body.prefix,
      head.body.suffix,
      sha256,
      packBytes(middles),
    )
    this.#calls.keep(head.id, { n, session })
  }

  #commitCall(head: Head<'commitCall'>, [json, marks, reply, ...columns]: Parts): void {
    if (json === undefined || marks === undefined || reply === undefined) {
      throw new PaddockError('STORE_CORRUPT', `the commit of ${head.id} has no outcome`)
    }
    const call = this.#call(head.id)
    for (const segment of head.segments) {
      const n = this.#statements.run(
        `INSERT INTO segments (id, session, call, choice, parent, parent_offset, origin, stop_cut, length, ids,
           logprobs, flags) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        storedId(segment.id),
        call.session,
        call.n,
        segment.choice,
        segment.parent === null ? null : this.#segment(segment.parent.segmentId),
        segment.parent === null ? null : segment.parent.offset,
        segment.origin,
        segment.stopCut ? 1 : 0,
        segment.length,
        inCallsFrame,
        segment.logprobs ? inCallsFrame : null,
        segment.flags ? inCallsFrame : null,
      )
      this.#segments.keep(segment.id, n)
    }
    const joined = joinColumns(head.segments, columns)
    const apart = joined.byteLength >= worthOwnFrame
    this.#statements.run(
      'INSERT INTO outcomes (call, ended_at, pack, columns) VALUES (?, ?, ?, ?)',
      call.n,
      head.endedAt,
      packOutcome([json, marks, reply], apart ? nothing : joined),
      apart ? packBytes(joined) : null,
    )
  }

  #appendEvent({ event }: Head<'appendEvent'>): void {
    this.#statements.run(
      'INSERT INTO events (id, at, rollout, session, event) VALUES (?, ?, ?, ?, ?)',
      storedId(event.id),
      event.at,
      storedIdOrNull(event.rolloutId),
      storedIdOrNull(event.sessionId),
      JSON.stringify(event),
    )
  }

  #session(id: Id): number {
    return this.#sessions.find(id, () => {
      const row = this.#statements.get<{ n: number }>('SELECT n FROM sessions WHERE id = ?', storedId(id))
      return this.#there(row, 'session', id).n
    })
  }

  #call(id: Id): { readonly n: number; readonly session: number } {
    return this.#calls.find(id, () => {
      const row = this.#statements.get<{ n: number; session: number }>(
        'SELECT n, session FROM calls WHERE id = ?',
        storedId(id),
      )
      return this.#there(row, 'call', id)
    })
  }

  #segment(id: Id): number {
    return this.#segments.find(id, () => {
      const row = this.#statements.get<{ n: number }>('SELECT n FROM segments WHERE id = ?', storedId(id))
      return this.#there(row, 'segment', id).n
    })
  }

  #there<Row>(row: Row | undefined, what: string, id: Id): Row {
    if (row === undefined)
      throw new PaddockError('STORE_CORRUPT', `an entry names the ${what} ${id}, which is not there`)
    return row
  }
}

const nothing = new Uint8Array(0)

/** The newest rows by id. */
class Known<Row> {
  readonly #rows = new Map<Id, Row>()

  keep(id: Id, row: Row): void {
    this.#rows.set(id, row)
    if (this.#rows.size <= maxKnown) return
    const [oldest] = this.#rows.keys()
    if (oldest !== undefined) this.#rows.delete(oldest)
  }

  find(id: Id, look: () => Row): Row {
    const known = this.#rows.get(id)
    if (known !== undefined) return known
    const row = look()
    this.keep(id, row)
    return row
  }

  clear(): void {
    this.#rows.clear()
  }
}
