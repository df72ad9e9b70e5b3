/** Writes entries into the log, one connection, no transaction of its own: whoever takes the journal in groups them. */
import type { Database } from 'better-sqlite3'
import { PaddockError } from '../../core/index.ts'
import type { Delivery } from '../contract/index.ts'
import { readFrame } from '../journal/index.ts'
import {
  chained,
  insertOf,
  readId,
  rowDigest,
  Statements,
  storedDigest,
  storedId,
  type StoredId,
  storedIdOrNull,
} from '../sqlite/index.ts'
import { type ChainEnd, Chains, type MustBeWhole } from './chains.ts'
import { packBytes } from './codec.ts'
import { joinColumns } from './columns.ts'
import type { ReadLogEntry } from './entries.ts'
import type { LogHead } from './log-head.ts'
import { readJournalRow } from './journal-row.ts'
import { packOutcome } from './outcome.ts'
import { entryOfLog } from './read-entry.ts'
import { eventsTable, logTables } from './schema.ts'
import { unpackSegmentList } from './segment-list.ts'

/** Rows that later entries will name, kept by their ids; the database knows the others. */
const maxKnown = 16_384

type Head<Op extends LogHead['op']> = Extract<LogHead, { op: Op }>
type Parts = readonly Uint8Array[]

/** Token columns of fewer bytes are in the frame of the outcome. */
const worthOwnFrame = 2048

interface KnownCall {
  readonly n: number
  readonly session: number
  ended: boolean
  /** A delivery is in `deliveries`, or may be. */
  told: boolean
}

/** A row of `call_ends` that waits for the delivery, which mostly comes in the same transaction. */
interface CallEnd {
  readonly call: number
  readonly session: number
  readonly endedAt: number
  delivery: Delivery | null
  readonly segments: Uint8Array
  readonly pack: Uint8Array
  readonly columns: Uint8Array | null
}

/** Inserts what an entry says. Entries were checked before they were written; what does not fit all the same throws. */
export class LogWriter {
  readonly chains: Chains
  readonly #db: Database
  readonly #statements: Statements
  readonly #sessions = new Known<number>()
  readonly #calls = new Known<KnownCall>()
  /** By call. */
  readonly #ending = new Map<number, CallEnd>()
  /** The chain of events; null: as the database says. */
  #events: { count: number; head: number } | null = null

  constructor(db: Database, mustBeWhole: MustBeWhole = () => {}) {
    this.#db = db
    this.chains = new Chains(db, mustBeWhole)
    this.#statements = new Statements(db)
  }

  write({ head, parts }: ReadLogEntry): void {
    switch (head.op) {
      case 'openSession':
        return this.#openSession(head)
      case 'closeSession':
        return this.#closeSession(head)
      case 'beginCall':
        return this.#beginCall(head, parts)
      case 'endCall':
        return this.#endCall(head, parts)
      case 'settleDelivery':
        return this.#settleDelivery(head)
      case 'supersede':
        return this.#supersede(head)
      case 'appendEvent':
        return this.#appendEvent(head)
      case 'takeIn':
        return this.#takeIn(parts)
    }
  }

  /** Writes what waits for more of the same transaction. To be called before each commit. */
  settle(): void {
    if (this.#ending.size === 0) return
    for (const { call, session, endedAt, delivery, segments, pack, columns } of this.#ending.values()) {
      this.chains.append(logTables.callEnds, session, [call, null, endedAt, delivery, segments, pack, columns])
    }
    this.#ending.clear()
  }

  /** Forgets what was kept in memory, after a transaction was rolled back. */
  forgetAll(): void {
    this.#sessions.clear()
    this.#calls.clear()
    this.#ending.clear()
    this.#events = null
    this.chains.forgetAll()
  }

  /** Forgets calls whose rows have moved, after the transaction that moved them. */
  forgetCalls(ids: readonly StoredId[]): void {
    for (const id of ids) this.#calls.drop(id)
  }

  /** Where the chain of events ends. */
  get events(): ChainEnd {
    this.#events ??= { ...readJournalRow(this.#db).events }
    return this.#events
  }

  #openSession({ session }: Head<'openSession'>): void {
    const n = this.chains.begin(
      storedId(session.id),
      storedIdOrNull(session.rolloutId),
      session.createdAt,
      JSON.stringify(session),
    )
    this.#sessions.keep(session.id, n)
  }

  #closeSession({ id, at }: Head<'closeSession'>): void {
    const session = this.#session(id)
    this.chains.append(logTables.sessionEnds, session, [session, at, null])
  }

  #beginCall(head: Head<'beginCall'>, [sha256, middles]: Parts): void {
    if (sha256 === undefined || middles === undefined)
      throw new PaddockError('STORE_CORRUPT', `the intent of ${readId(head.id)} has no texts`)
    const session = this.#session(head.session)
    const n = this.chains.append(logTables.calls, session, [
      columnOf(head.id),
      session,
      head.seq,
      null,
      head.startedAt,
      typeof head.requestDigest === 'string' ? storedDigest(head.requestDigest) : head.requestDigest,
      head.base === null ? null : this.#call(head.base).n,
      head.depth,
      head.facts.prefix,
      head.facts.suffix,
      head.body.prefix,
      head.body.suffix,
      sha256,
      packBytes(middles),
    ])
    this.#calls.keep(head.id, { n, session, ended: false, told: false })
  }

  #endCall(head: Head<'endCall'>, [list, json, marks, reply, ...columns]: Parts): void {
    if (list === undefined || json === undefined || marks === undefined || reply === undefined) {
      throw new PaddockError('STORE_CORRUPT', `the end of ${readId(head.id)} has no outcome`)
    }
    const call = this.#call(head.id)
    if (call.ended) throw new PaddockError('STORE_CORRUPT', `call ${readId(head.id)} has ended before`)
    const joined = joinColumns(unpackSegmentList(list), columns)
    const apart = joined.byteLength >= worthOwnFrame
    call.ended = true
    this.#ending.set(call.n, {
      call: call.n,
      session: call.session,
      endedAt: head.endedAt,
      delivery: null,
      // What the journal hands out holds until its next entry.
      segments: Buffer.from(list),
      pack: packOutcome({ json, marks, reply }, apart ? nothing : joined),
      columns: apart ? packBytes(joined) : null,
    })
  }

  /** Into the row of the call's end where that is not yet written, unless something was told before. */
  #settleDelivery({ id, delivery }: Head<'settleDelivery'>): void {
    const call = this.#call(id)
    const ending = this.#ending.get(call.n)
    if (ending !== undefined && !call.told) {
      ending.delivery = delivery
      return
    }
    call.told = true
    this.chains.append(logTables.deliveries, call.session, [call.n, delivery, null])
  }

  #supersede({ id, by }: Head<'supersede'>): void {
    const call = this.#call(id)
    this.chains.append(logTables.supersessions, call.session, [call.n, storedId(by), null])
  }

  #appendEvent({ event }: Head<'appendEvent'>): void {
    const { count, head } = this.events
    const row = [
      storedId(event.id),
      event.at,
      storedIdOrNull(event.rolloutId),
      storedIdOrNull(event.sessionId),
      count + 1,
      JSON.stringify(event),
    ]
    const digest = rowDigest(row)
    this.#statements.run(insertEvent, ...row, digest)
    this.#events = { count: count + 1, head: chained(head, digest) }
  }

  /** One entry of the journal is written whole or not at all, and so is all that is in it. */
  #takeIn(frames: Parts): void {
    for (const frame of frames) {
      const entry = readFrame(Buffer.from(frame))
      if (entry === null) throw new PaddockError('STORE_CORRUPT', 'an ingested fact does not have its checksum')
      this.write(entryOfLog(entry))
    }
  }

  #session(id: StoredId): number {
    return this.#sessions.find(id, () => {
      const row = this.#statements.get<{ n: number }>('SELECT n FROM sessions WHERE id = ?', columnOf(id))
      return this.#there(row, 'session', id).n
    })
  }

  #call(id: StoredId): KnownCall {
    return this.#calls.find(id, () => {
      const row = this.#statements.get<{ n: number; session: number; ended: number }>(
        `SELECT n, session, EXISTS (SELECT 1 FROM call_ends WHERE call = n) AS ended FROM calls WHERE id = ?
         UNION ALL SELECT n, session, 1 FROM archived_calls WHERE id = ?`,
        columnOf(id),
        columnOf(id),
      )
      const { n, session, ended } = this.#there(row, 'call', id)
      return { n, session, ended: ended !== 0, told: true }
    })
  }

  #there<Row>(row: Row | undefined, what: string, id: StoredId): Row {
    if (row !== undefined) return row
    throw new PaddockError('STORE_CORRUPT', `an entry names the ${what} ${readId(id)}, which is not there`)
  }
}

const nothing = new Uint8Array(0)
const insertEvent = insertOf(eventsTable)

/** The column value of an id that an entry told as text or as that value already. */
function columnOf(id: StoredId): StoredId {
  return typeof id === 'string' ? storedId(id) : id
}

/** The newest rows by id, in two generations: nothing is looked for to be dropped. */
class Known<Row> {
  #young = new Map<string, Row>()
  #old = new Map<string, Row>()

  keep(id: StoredId, row: Row): void {
    this.#keep(nameOf(id), row)
  }

  find(id: StoredId, look: () => Row): Row {
    const name = nameOf(id)
    const young = this.#young.get(name)
    if (young !== undefined) return young
    const row = this.#old.get(name) ?? look()
    this.#keep(name, row)
    return row
  }

  drop(id: StoredId): void {
    this.#young.delete(nameOf(id))
    this.#old.delete(nameOf(id))
  }

  clear(): void {
    this.#young.clear()
    this.#old.clear()
  }

  #keep(name: string, row: Row): void {
    if (this.#young.size >= maxKnown / 2) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(name, row)
  }
}

/** The same for both forms of an id: the bytes of a UUID as characters, which is quicker than its text. */
function nameOf(id: StoredId): string {
  const stored = columnOf(id)
  if (typeof stored === 'string') return `${notInBytes}${stored}`
  return (stored instanceof Buffer ? stored : Buffer.from(stored)).toString('latin1')
}

const notInBytes = '\u0100'
