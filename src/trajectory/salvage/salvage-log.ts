/** The records of a log that are whole, in a new one: each session up to its first record that is not. */
import type { Database } from 'better-sqlite3'
import { archivedTables, chainOf, eventsTable, logMigrations, logTables, type SessionChain } from '../recorder/index.ts'
import {
  chained,
  type ColumnValue,
  readId,
  rowDigest,
  schemaVersion,
  Statements,
  type StoredId,
} from '../sqlite/index.ts'
import { copyRows } from './copy-rows.ts'

/** What came over. */
export interface SalvagedLog {
  readonly lost: readonly string[]
  /** Sessions that came over whole. */
  readonly whole: number
  /** Sessions that came over in part, or not at all, and the rollouts that they are of. */
  readonly cut: readonly { readonly id: string; readonly rollout: string | null; readonly kept: number }[]
  /** The chain of events. */
  readonly events: { readonly count: number; readonly head: number }
  readonly journalIsWhole: boolean
}

/**
 * Copies what is whole. `remembered`: the sessions that the catalogue knows, with the number of their records.
 * `journalIsWhole` false: sessions without an end may have had more, so they are cut.
 */
export function salvageLog(
  from: Database,
  into: Database,
  o: { readonly remembered: readonly SessionChain[]; readonly journalIsWhole: boolean },
): SalvagedLog {
  const { remembered, journalIsWhole } = o
  const tables = Object.values(logTables)
  // Older logs have archived nothing.
  const archived = schemaVersion(from) < logMigrations.length ? [] : Object.values(archivedTables)
  const lost = [...tables, ...archived, eventsTable].flatMap((table) => copyRows(from, into, table).damaged)
  const statements = new Statements(into)
  const counts = new Map(remembered.map((chain) => [readId(chain.id), chain]))
  const cut: SalvagedLog['cut'][number][] = []
  let whole = 0
  into.transaction(() => {
    dropOrphans(statements)
    for (const row of statements.all<{ n: number; id: StoredId; rollout: StoredId | null; ended: 0 | 1 }>(
      'SELECT n, id, rollout, n IN (SELECT session FROM session_ends) AS ended FROM sessions',
    )) {
      const id = readId(row.id)
      const known = counts.get(id)?.count ?? 0
      counts.delete(id)
      const before = archivedOf(statements, row.n)
      const records = recordsOf(statements, row.n).filter((nth) => nth > before)
      const kept = records.findIndex((nth, place) => nth !== before + place + 1)
      const sound = kept === -1 && before + records.length >= known && (row.ended === 1 || journalIsWhole)
      if (sound) whole += 1
      else {
        const upTo = before + (kept === -1 ? records.length : kept)
        cutBehind(statements, row.n, upTo)
        cut.push({
          id,
          rollout: row.rollout === null ? null : readId(row.rollout),
          kept: chainOf(statements, row.n).count,
        })
      }
    }
    dropOrphans(statements)
  })()
  cut.push(...lostSessions([...counts.values()]))
  return { lost, whole, cut, events: renumbered(into, statements), journalIsWhole }
}

/** Sessions of which nothing came over. */
export function lostSessions(remembered: readonly SessionChain[]): SalvagedLog['cut'] {
  return remembered.map(({ id, rollout }) => ({
    id: readId(id),
    rollout: rollout === null ? null : readId(rollout),
    kept: 0,
  }))
}

/** How many records of a session are in an object. */
function archivedOf(statements: Statements, session: number): number {
  const text = 'SELECT count FROM archived_sessions WHERE session = ?'
  return statements.get<{ count: number }>(text, session)?.count ?? 0
}

/** Takes a session out whose object cannot be read. */
export function forgetArchived(into: Database, session: number): void {
  const statements = new Statements(into)
  into.transaction(() => {
    for (const { name, session: where } of Object.values(logTables).toReversed()) {
      statements.run(`DELETE FROM ${name} WHERE ${where}`, session)
    }
    for (const { name } of Object.values(archivedTables))
      statements.run(`DELETE FROM ${name} WHERE session = ?`, session)
  })()
}

function recordsOf(statements: Statements, session: number): readonly number[] {
  return Object.values(logTables)
    .flatMap((table) =>
      statements.all<{ nth: number }>(`SELECT nth FROM ${table.name} WHERE ${table.session}`, session),
    )
    .map(({ nth }) => nth)
    .toSorted((a, b) => a - b)
}

/** What a record needs stands before it, so what is left hangs together. */
function cutBehind(statements: Statements, session: number, nth: number): void {
  const { sessions, calls, ...others } = logTables
  for (const table of [...Object.values(others), calls, sessions]) {
    statements.run(`DELETE FROM ${table.name} WHERE nth > ? AND ${table.session}`, nth, session)
  }
}

/** Records of calls and sessions that did not come over. */
function dropOrphans(statements: Statements): void {
  statements.run('DELETE FROM calls WHERE session NOT IN (SELECT n FROM sessions)')
  statements.run('DELETE FROM session_ends WHERE session NOT IN (SELECT n FROM sessions)')
  statements.run('DELETE FROM archived_sessions WHERE session NOT IN (SELECT n FROM sessions)')
  statements.run('DELETE FROM archived_calls WHERE session NOT IN (SELECT session FROM archived_sessions)')
  for (const table of ['call_ends', 'deliveries', 'supersessions']) {
    statements.run(`DELETE FROM ${table} WHERE call NOT IN (SELECT n FROM session_calls)`)
  }
}

/** Gives events places without a gap. */
function renumbered(into: Database, statements: Statements): SalvagedLog['events'] {
  let [count, head] = [0, 0]
  into.transaction(() => {
    for (const row of statements.all<Record<string, ColumnValue>>('SELECT * FROM events ORDER BY nth')) {
      count += 1
      const digest = rowDigest(eventsTable.columns.map((column) => (column === 'nth' ? count : (row[column] ?? null))))
      if (row['nth'] !== count) {
        statements.run('UPDATE events SET nth = ?, digest = ? WHERE n = ?', count, digest, row['n'])
      }
      head = chained(head, digest)
    }
  })()
  return { count, head }
}
