/** What is wrong with the records of a log: those that were changed, those that are gone, and what the journal still holds. */
import type { Database } from 'better-sqlite3'
import { Follower } from '../journal/index.ts'
import {
  archivedTables,
  chainOf,
  type ChainEnd,
  eventsTable,
  logTables,
  readJournalRow,
  type RememberedLog,
  type SessionChain,
} from '../recorder/index.ts'
import { asStoreError, chained, hasDigest, readId, Statements, type StoredId } from '../sqlite/index.ts'
import type { Found } from './report.ts'

/** What the catalogue remembers of a log. Read it before the log: beside a live owner the log goes on meanwhile. */
export interface Remembered {
  readonly log: RememberedLog | null
  readonly sessions: readonly SessionChain[]
}

/** Tells every record without its digest, every gap, and every session with other records than remembered. */
export function checkRecords(db: Database, remembered: Remembered, found: Found): void {
  const statements = new Statements(db)
  for (const table of [...Object.values(logTables), ...Object.values(archivedTables), eventsTable]) {
    const asked = (): void => {
      for (const row of statements.each<{ nth?: number }>(`SELECT * FROM ${table.name}`)) {
        if (!hasDigest(table, row))
          found(table.name, `record ${row.nth ?? ''} (${nameOf(row)}) does not have its digest`)
      }
    }
    attempt(asked, table.name, found)
  }
  const bySession = new Map(remembered.sessions.map((chain) => [readId(chain.id), chain]))
  attempt(
    () => {
      for (const { n, id } of statements.all<{ n: number; id: StoredId }>('SELECT n, id FROM sessions')) {
        const name = readId(id)
        checkChain(statements, n, bySession.get(name), (what) => found(`session ${name}`, what))
        bySession.delete(name)
      }
      for (const [id, { count }] of bySession) found(`session ${id}`, `all of its ${count} records are missing`)
    },
    'log.sqlite',
    found,
  )
  attempt(() => checkEvents(statements, db, remembered.log?.events, found), 'events', found)
}

function checkChain(
  statements: Statements,
  n: number,
  remembered: ChainEnd | undefined,
  found: (what: string) => void,
): void {
  attempt(
    () => {
      // Also behind what is remembered there is no gap.
      const now = chainOf(statements, n)
      if (remembered === undefined) return
      if (now.count < remembered.count) return found(`${remembered.count - now.count} of its records are missing`)
      const then = chainOf(statements, n, remembered.count)
      if (then.head !== remembered.head) found('its records are not those that were stored')
    },
    '',
    (_, what) => found(what),
  )
}

function checkEvents(statements: Statements, db: Database, remembered: ChainEnd | undefined, found: Found): void {
  let end: ChainEnd = { count: 0, head: 0 }
  const heads = new Map([[0, 0]])
  for (const { nth, digest } of statements.all<{ nth: number; digest: number }>(
    'SELECT nth, digest FROM events ORDER BY nth',
  )) {
    if (nth !== end.count + 1) return found('events', `event ${end.count + 1} is missing`)
    end = { count: nth, head: chained(end.head, digest) }
    if (nth === remembered?.count) heads.set(nth, end.head)
  }
  const own = readJournalRow(db).events
  if (own.count !== end.count || own.head !== end.head)
    found('events', `${own.count} events were stored, and not these`)
  if (remembered === undefined) return
  if (remembered.count > end.count) found('events', `${remembered.count - end.count} events are missing`)
  else if (heads.get(remembered.count) !== remembered.head) found('events', 'these are not the events that were stored')
}

/** Tells what of the journal was acknowledged and cannot be read any more; what is whole gets in when the store is opened. */
export function checkJournal(db: Database, logFile: string, found: Found): void {
  const { place, open } = readJournalRow(db)
  if (!open) return
  const follower = new Follower(logFile, place)
  try {
    let entry = follower.next()
    while (entry !== null) entry = follower.next()
    const unreadable = follower.unreadable()
    if (unreadable !== null) {
      const { from, why } = unreadable
      found(`journal ${from.generation}`, `what was written cannot be read from ${from.offset} on: ${why}`)
    }
  } catch (error) {
    found('journal', asStoreError(error, 'the journal').message)
  } finally {
    follower.close()
  }
}

function nameOf(row: object): string {
  const { id, call, session } = row as { readonly id?: StoredId; readonly call?: number; readonly session?: number }
  if (id !== undefined && id !== null) return readId(id)
  return call === undefined ? `session number ${String(session)}` : `call number ${String(call)}`
}

/** Runs a check; what it throws is a finding. */
export function attempt(check: () => void, where: string, found: Found): void {
  try {
    check()
  } catch (error) {
    const { code, message } = asStoreError(error, where)
    found(where, `${code}: ${message}`)
  }
}
