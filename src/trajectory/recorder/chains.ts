/**
 * The chain of records of each session: how many there are, and what their digests come to in order. A record that was
 * changed does not have its digest; one that is gone leaves a gap, or fewer records than the catalogue remembers.
 */
import type { Database } from 'better-sqlite3'
import { PaddockError } from '../../core/index.ts'
import {
  chained,
  type ColumnValue,
  insertOf,
  readId,
  rowDigest,
  Statements,
  type StoredId,
  wholeRows,
} from '../sqlite/index.ts'
import { archivedTables, logTables, type RecordTable } from './schema.ts'

/** A chain up to its last record. */
export interface ChainEnd {
  readonly count: number
  readonly head: number
}

/** A session's chain. */
export interface SessionChain extends ChainEnd {
  readonly id: StoredId
  readonly rollout: StoredId | null
}

/** Throws `STORE_CORRUPT` for a session that has lost records. */
export type MustBeWhole = (session: number, id: StoredId) => void

type Growing<End> = { -readonly [Name in keyof End]: End[Name] }

const tables: readonly RecordTable[] = Object.values(logTables)
const inserts = new Map(tables.map((table) => [table.name, insertOf(table)]))
const placesOfSession = `${tables
  .map(({ name, session }) => `SELECT nth, digest FROM ${name} WHERE ${session}`)
  .join(' UNION ALL ')} ORDER BY nth`

/** Chains in mind; more are read again. */
const maxKnown = 16_384

/** Appends records to the chains of their sessions. */
export class Chains {
  readonly #statements: Statements
  readonly #mustBeWhole: MustBeWhole
  readonly #ends = new Map<number, Growing<SessionChain>>()
  /** Sessions whose chains went on since {@link Chains.settled}. */
  readonly #changed = new Set<number>()

  /** `mustBeWhole` throws for a session of before that has lost records: nothing is put in their place. */
  constructor(db: Database, mustBeWhole: MustBeWhole) {
    this.#statements = new Statements(db)
    this.#mustBeWhole = mustBeWhole
  }

  /** A new session, whose chain begins. Returns its `n`. */
  begin(id: StoredId, rollout: StoredId | null, createdAt: number, record: string): number {
    const end = { id, rollout, count: 0, head: 0 }
    const n = this.#insert(logTables.sessions, end, [id, rollout, createdAt, null, record])
    this.#ends.set(n, end)
    this.#changed.add(n)
    return n
  }

  /** Inserts a record of a session; in `values` null stands where `nth` belongs. Returns the rowid. Throws `STORE_CORRUPT`. */
  append(table: RecordTable, session: number, values: readonly ColumnValue[]): number {
    const rowid = this.#insert(table, this.#end(session), values)
    this.#changed.add(session)
    return rowid
  }

  /** Chains that went on since they were told last. Throws `STORE_CORRUPT` where one has a gap. */
  changed(): readonly SessionChain[] {
    return [...this.#changed].flatMap((session) => this.#known(session) ?? [])
  }

  /** Where a chain ends. Throws `STORE_CORRUPT` where it has lost records. */
  end(session: number): ChainEnd {
    return this.#end(session)
  }

  /** The chains of these sessions were told. */
  settled(): void {
    this.#changed.clear()
    if (this.#ends.size > maxKnown) this.#ends.clear()
  }

  /** Forgets what was kept in memory, after a transaction was rolled back. */
  forgetAll(): void {
    this.#ends.clear()
  }

  #insert(table: RecordTable, end: Growing<ChainEnd>, values: readonly ColumnValue[]): number {
    const nth = end.count + 1
    const place = table.columns.indexOf('nth')
    const row = values.map((value, at) => (at === place ? nth : value))
    const digest = rowDigest(row)
    row.push(digest)
    const rowid = this.#statements.run(inserts.get(table.name) ?? '', ...row)
    end.head = chained(end.head, digest)
    end.count = nth
    return rowid
  }

  #end(session: number): Growing<SessionChain> {
    const end = this.#known(session)
    if (end === null) throw new PaddockError('STORE_CORRUPT', `there is no session number ${session}`)
    return end
  }

  /** Null: there is no such session, or no longer, for its transaction was rolled back. */
  #known(session: number): Growing<SessionChain> | null {
    const known = this.#ends.get(session)
    if (known !== undefined) return known
    const row = this.#statements.get<Pick<SessionChain, 'id' | 'rollout'>>(
      'SELECT id, rollout FROM sessions WHERE n = ?',
      session,
    )
    if (row === undefined) return null
    this.#mustBeWhole(session, row.id)
    const end = { ...row, ...chainOf(this.#statements, session) }
    this.#ends.set(session, end)
    return end
  }
}

/**
 * The chain of a session as its records tell it, up to record `upTo`. Throws `STORE_CORRUPT` where a record is missing
 * in the middle. Digests are taken at their word here.
 */
export function chainOf(statements: Statements, session: number, upTo = Infinity): ChainEnd {
  let { count, head } = archivedChain(statements, session)
  const archived = count
  for (const row of statements.all<{ nth: number; digest: number }>(placesOfSession, ...tables.map(() => session))) {
    // The session itself and its end stay here.
    if (row.nth <= archived) continue
    if (row.nth !== count + 1) throw missing(statements, session, count + 1)
    if (row.nth > upTo) break
    count = row.nth
    head = chained(head, row.digest)
  }
  return { count, head }
}

/** How far the records of a session are in an object. Throws `STORE_CORRUPT`. */
function archivedChain(statements: Statements, session: number): ChainEnd {
  const [row] = wholeRows<ChainEnd>(statements, archivedTables.sessions, 'WHERE session = ?', session)
  return row ?? { count: 0, head: 0 }
}

function missing(statements: Statements, session: number, nth: number): PaddockError {
  const row = statements.get<{ id: StoredId }>('SELECT id FROM sessions WHERE n = ?', session)
  const name = row === undefined ? `number ${session}` : readId(row.id)
  return new PaddockError('STORE_CORRUPT', `record ${nth} of session ${name} is missing`)
}
