/** The one row that says how far the journal is ingested, and where the chain of events ends. */
import type { Database } from 'better-sqlite3'
import { PaddockError } from '../../core/index.ts'
import type { Place } from '../journal/index.ts'
import { rowDigest, Statements, whole } from '../sqlite/index.ts'
import type { ChainEnd } from './chains.ts'
import { journalTable } from './schema.ts'

/** What the log says of its journal. */
export interface JournalRow {
  readonly place: Place
  /** An owner writes the journal, or died doing so. */
  readonly open: boolean
  /** The chain of events. */
  readonly events: ChainEnd
}

interface Row {
  readonly generation: number
  readonly ingested_to: number
  readonly open: number
  readonly events: number
  readonly events_head: number
}

/** Throws `STORE_CORRUPT`. */
export function readJournalRow(db: Database): JournalRow {
  const row = new Statements(db).get<Row>('SELECT * FROM journal')
  if (row === undefined) throw new PaddockError('STORE_CORRUPT', `${db.name} does not say how far its journal came`)
  const { generation, ingested_to: offset, open, events, events_head: head } = whole(journalTable, row)
  return { place: { generation, offset }, open: open !== 0, events: { count: events, head } }
}

/** How far the journal of a log is ingested. Throws `STORE_CORRUPT`. */
export function readPlace(db: Database): Place {
  return readJournalRow(db).place
}

/** Puts the row in place of the one that is there. */
export function writeJournalRow(statements: Statements, { place, open, events }: JournalRow): void {
  const values = [place.generation, place.offset, open ? 1 : 0, events.count, events.head]
  statements.run(
    'UPDATE journal SET generation = ?, ingested_to = ?, open = ?, events = ?, events_head = ?, digest = ?',
    ...values,
    rowDigest(values),
  )
}
