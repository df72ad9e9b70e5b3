/** The writer thread of the log: takes the journal in, and tells what the log knows of a session or call. */
import { parentPort, workerData } from 'node:worker_threads'
import { type Id, PaddockError } from '../../core/index.ts'
import { catalogueMigrations } from '../catalogue/index.ts'
import { generationsOf, isBefore, Journal, type Place, removeBefore } from '../journal/index.ts'
import {
  damageNamed,
  openForWriting,
  sayHello,
  serveEach,
  Statements,
  storedId,
  type Synchronous,
} from '../sqlite/index.ts'
import { type ArchivedObject, dropArchived } from './archived.ts'
import { HeadsBook, rememberedLog } from './heads-book.ts'
import { logIdentity } from './identity.ts'
import { readPlace } from './journal-row.ts'
import { LogWriter } from './log-writer.ts'
import { Memory } from './memory.ts'
import { recover } from './recover.ts'
import { logMigrations } from './schema.ts'
import { isOfTheDisk, Ingest } from './ingest.ts'

/** What the thread needs to open. */
export interface WriterData {
  readonly file: string
  readonly catalogueFile: string
  readonly synchronous: Synchronous
  readonly now: number
}

/** What it says once it is open. */
export interface WriterHello {
  readonly interruptedCalls: number
  /** Sessions that have fewer records than the catalogue remembers, and places of the journal that cannot be read. */
  readonly damaged: number
  /** The generation in which the journal goes on. */
  readonly generation: number
}

const isSame = (a: Place, b: Place): boolean => a.generation === b.generation && a.offset === b.offset

const port = parentPort
if (port === null) throw new Error('this file is a worker thread of the store')
// Written by openRecorder and by nothing else.
const data = workerData as WriterData

const opened = sayHello(port, () => {
  const db = openForWriting(data.file, {
    synchronous: data.synchronous,
    migrations: logMigrations,
    now: data.now,
    pageBytes: 1024,
    references: 'trusted',
  })
  const catalogue = openForWriting(data.catalogueFile, {
    synchronous: data.synchronous,
    migrations: catalogueMigrations,
    now: data.now,
  })
  const book = new HeadsBook(db, catalogue)
  book.begin(logIdentity(db))
  const before = readPlace(db)
  const remembered = rememberedLog(catalogue)?.place ?? before
  // A log that lost its last pages gets them again from the journal.
  let again = isBefore(before, remembered)
  const writer = new LogWriter(db, (session, id) => {
    if (!again) book.mustBeWhole(session, id)
  })
  const ingest = new Ingest(db, writer, data.file)
  const unreadable = ingest.left()
  if (unreadable > 0 || isBefore(ingest.place, remembered)) again = false
  const interruptedCalls = recover(db, writer, data.now)
  const generation = Math.max(ingest.place.generation, remembered.generation, ...generationsOf(data.file)) + 1
  // The file before the row that expects it.
  new Journal(data.file, generation).close()
  ingest.beginIn(generation)
  let damaged = unreadable
  if (isSame(before, remembered)) book.tell(writer.chains, ingest.place, writer.events)
  else damaged += book.tellAll(ingest.place, writer.events, again)
  writer.chains.settled()
  again = false
  removeBefore(data.file, generation)
  const value: WriterHello = { interruptedCalls, damaged, generation }
  return { served: { db, ingest, writer, book }, value }
})

if (opened !== null) {
  const { db, ingest, writer, book } = opened
  const memory = new Memory(db, book)
  /** What the disk has no room for is told with the next round: the catalogue may remember less than there is. */
  const tell = (): void => {
    try {
      book.tell(writer.chains, ingest.place, writer.events)
    } catch (error) {
      if (!isOfTheDisk(error)) throw error
    }
  }
  const caughtUp = (end: Place): void => {
    const { generation } = ingest.place
    ingest.upTo(end)
    tell()
    if (ingest.place.generation !== generation) removeBefore(data.file, ingest.place.generation)
  }
  const statements = new Statements(db)
  /** False: it went on since, or the catalogue does not remember all of it yet. */
  const archive = ({ id, ...object }: ArchivedObject & { readonly id: Id }): boolean => {
    const stored = storedId(id)
    const row = statements.get<{ n: number }>('SELECT n FROM sessions WHERE id = ?', stored)
    if (row === undefined) throw new PaddockError('NOT_FOUND', `there is no session ${id}`)
    const { count, head } = writer.chains.end(row.n)
    if (count !== object.count || head !== object.head || !book.remembers(stored, count)) return false
    writer.forgetCalls(db.transaction(() => dropArchived(statements, row.n, object)).immediate())
    return true
  }
  serveEach(
    port,
    damageNamed({
      ingest: (end: Place) => caughtUp(end),
      session: (end: Place, id: Id) => {
        caughtUp(end)
        return memory.session(id)
      },
      sessionOfCall: (end: Place, id: Id) => {
        caughtUp(end)
        return memory.sessionOfCall(id)
      },
      archive: (end: Place, sealed: ArchivedObject & { readonly id: Id }) => {
        caughtUp(end)
        return archive(sealed)
      },
      segmentLength: (end: Place, id: Id) => {
        caughtUp(end)
        return memory.segmentLength(id)
      },
    }),
    () => {
      ingest.all()
      ingest.close()
      tell()
      book.close()
      removeBefore(data.file, ingest.place.generation)
      db.pragma('wal_checkpoint(TRUNCATE)')
      db.close()
    },
  )
}
