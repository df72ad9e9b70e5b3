/**
 * A finished session as an object: a log of that session alone, made by the schema of every log and compressed, with rows as they
 * were: their digests, their places in its chain. So it is read and checked as any log is, and brought forward like one. Its
 * events are in it as they were then; those of the log count.
 */
import zlib from 'node:zlib'
import Database from 'better-sqlite3'
import { type Digest, type Event, type Id, PaddockError, sha256 } from '../../core/index.ts'
import type { Delivery } from '../contract/index.ts'
import {
  type ColumnValue,
  type DigestedTable,
  insertOf,
  migrate,
  readId,
  rowDigest,
  Statements,
  storedId,
  type StoredId,
  whole,
} from '../sqlite/index.ts'
import { type ChainEnd, chainOf } from './chains.ts'
import { archivedTables, eventsTable, logMigrations, logTables } from './schema.ts'

/** What a log keeps of an archived session: its object, and its chain up to the records in it. */
export interface ArchivedObject extends ChainEnd {
  /** SHA-256 of its bytes. */
  readonly object: Digest
}

/** A session whose records are in an object, with what was told of it since. */
export interface ArchivedSession extends ArchivedObject {
  readonly id: Id
  /** In their order. */
  readonly deliveries: readonly (readonly [call: StoredId, delivery: Delivery])[]
  readonly supersessions: readonly (readonly [call: StoredId, by: StoredId])[]
  /** Null: those of the object. */
  readonly events: readonly Event[] | null
}

/** A session as the bytes of its object. The same records give the same bytes. */
export interface SealedSession extends ArchivedObject {
  readonly id: Id
  readonly rolloutId: Id | null
  /** Sessions that its rollout has by now. */
  readonly ofRollout: number
  readonly bytes: Uint8Array<ArrayBuffer>
}

type Row = Readonly<Record<string, ColumnValue>>

const pageBytes = 1024

/** Of a session that is finished. Every row is checked on its way. Throws `STORE_CORRUPT`. */
export function sealSession(log: Statements, id: Id): SealedSession {
  const row = log.get<{ n: number; rollout: StoredId | null }>(
    'SELECT n, rollout FROM sessions WHERE id = ?',
    storedId(id),
  )
  if (row === undefined) throw new PaddockError('NOT_FOUND', `there is no session ${id}`)
  const chain = chainOf(log, row.n)
  const db = new Database(':memory:')
  try {
    db.pragma(`page_size = ${pageBytes}`)
    db.pragma('foreign_keys = OFF')
    migrate(db, logMigrations, 0)
    db.transaction(() => {
      for (const table of Object.values(logTables)) copyRows(log, db, table, table.session, row.n)
      copyRows(log, db, eventsTable, 'session = ? OR rollout = ?', storedId(id), row.rollout)
    })()
    const bytes = compressed(db.serialize())
    const rolloutId = row.rollout === null ? null : readId(row.rollout)
    const ofRollout = sessionsOf(log, row.rollout)
    return { id, rolloutId, ofRollout, bytes, object: sha256(bytes), ...chain }
  } finally {
    db.close()
  }
}

/** How many sessions a rollout has; of none, the session itself. */
function sessionsOf(log: Statements, rollout: StoredId | null): number {
  if (rollout === null) return 1
  return log.get<{ count: number }>('SELECT count(*) AS count FROM sessions WHERE rollout = ?', rollout)?.count ?? 1
}

function copyRows(
  from: Statements,
  into: Database.Database,
  table: DigestedTable,
  where: string,
  ...values: readonly unknown[]
): void {
  let insert: Database.Statement | null = null
  for (const row of from.each<Row>(
    `SELECT rowid AS "row", * FROM ${table.name} WHERE ${where} ORDER BY 1`,
    ...values,
  )) {
    const { row: _, ...columns } = whole(table, row)
    const names = Object.keys(columns)
    insert ??= into.prepare(
      `INSERT INTO ${table.name} (${names.map((name) => `"${name}"`).join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
    )
    insert.run(...Object.values(columns))
  }
}

function compressed(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(
    zlib.zstdCompressSync(bytes, {
      pledgedSrcSize: bytes.byteLength,
      params: { [zlib.constants.ZSTD_c_compressionLevel]: 3, [zlib.constants.ZSTD_c_checksumFlag]: 1 },
    }),
  )
}

/** The log that an object is, in memory. Throws `STORE_CORRUPT`, also where it is not of that session with that chain. */
export function openArchived(bytes: Uint8Array, archived: ArchivedObject & { readonly id: Id }): Database.Database {
  const damaged = (why: string, cause?: unknown): PaddockError =>
    new PaddockError('STORE_CORRUPT', `the object ${archived.object} of session ${archived.id}: ${why}`, { cause })
  if (sha256(bytes) !== archived.object) throw damaged('its bytes do not have their digest')
  let db: Database.Database
  try {
    db = new Database(zlib.zstdDecompressSync(bytes))
    db.pragma('foreign_keys = OFF')
    migrate(db, logMigrations, 0)
  } catch (error) {
    throw damaged('it is no log that this program reads', error)
  }
  try {
    const log = new Statements(db)
    const row = log.get<{ n: number }>('SELECT n FROM sessions WHERE id = ?', storedId(archived.id))
    const chain = row === undefined ? null : chainOf(log, row.n)
    if (chain?.count !== archived.count || chain.head !== archived.head) throw damaged('it has other records')
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** Adds what was told of an archived session since, as the log would have it. */
export function tellLate(db: Database.Database, { deliveries, supersessions, count }: ArchivedSession): void {
  const log = new Statements(db)
  let nth = count
  const tell = (table: DigestedTable, call: StoredId, value: ColumnValue): void => {
    const row = log.get<{ n: number }>('SELECT n FROM calls WHERE id = ?', call)
    if (row === undefined) throw new PaddockError('STORE_CORRUPT', `there is no call ${readId(call)} in its object`)
    nth += 1
    const values = [row.n, value, nth]
    log.run(insertOf(table), ...values, rowDigest(values))
  }
  for (const [call, delivery] of deliveries) tell(logTables.deliveries, call, delivery)
  for (const [call, by] of supersessions) tell(logTables.supersessions, call, by)
}

/**
 * Takes the records of a session out of its log, whose object is safe by now. In a transaction of the log's writer. Returns the calls
 * whose rows have moved.
 */
export function dropArchived(
  log: Statements,
  session: number,
  { object, count, head }: ArchivedObject,
): readonly StoredId[] {
  const { n: lowest } = log.get<{ n: number | null }>('SELECT min(n) AS n FROM archived_calls') ?? { n: null }
  const calls = log.all<{ id: StoredId; seq: number; superseded: number; segments: Uint8Array }>(
    `SELECT id, seq, EXISTS (SELECT 1 FROM supersessions WHERE call = n) AS superseded, segments
     FROM calls JOIN call_ends ON call = n WHERE session = ? ORDER BY n`,
    session,
  )
  let n = lowest ?? 0
  for (const { id, seq, superseded, segments } of calls) {
    n -= 1
    const row = [n, id, session, seq, superseded, segments]
    log.run(insertOf(archivedTables.calls), ...row, rowDigest(row))
  }
  for (const { name } of [logTables.deliveries, logTables.supersessions, logTables.callEnds]) {
    log.run(`DELETE FROM ${name} WHERE call IN (SELECT n FROM calls WHERE session = ?)`, session)
  }
  log.run('DELETE FROM calls WHERE session = ?', session)
  const row = [session, object, count, head]
  log.run(insertOf(archivedTables.sessions), ...row, rowDigest(row))
  return calls.map(({ id }) => id)
}
