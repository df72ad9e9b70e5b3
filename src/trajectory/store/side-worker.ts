/** The store's second thread: catalogue, queue, and reads of the log, so that none of them waits behind a commit. */
import { parentPort, workerData } from 'node:worker_threads'
import { catalogueMigrations, SqlCatalogue } from '../catalogue/index.ts'
import { SqliteQueue } from '../queue/index.ts'
import type { SessionLog } from '../contract/index.ts'
import { archivedEvents, LogReader, logMigrations, readArchived } from '../recorder/index.ts'
import { SqliteSql } from '../sql/index.ts'
import {
  conflictsNamed,
  damageNamed,
  Moved,
  openForReading,
  openForWriting,
  type Operations,
  sayHello,
  serveEach,
  type Synchronous,
} from '../sqlite/index.ts'
import { SqlTrainerBook } from '../trainer/index.ts'
import { catalogueOperations, queueOperations, trainerOperations } from './operations.ts'

/** What the thread needs to open. */
export interface SideData {
  readonly logFile: string
  readonly catalogueFile: string
  readonly synchronous: Synchronous
  readonly now: number
}

const port = parentPort
if (port === null) throw new Error('this file is a worker thread of the store')
// Written by openSide and by nothing else.
const data = workerData as SideData

const opened = sayHello(port, () => {
  const catalogue = openForWriting(data.catalogueFile, {
    synchronous: data.synchronous,
    migrations: catalogueMigrations,
    now: data.now,
  })
  return { served: { catalogue }, value: null }
})

if (opened !== null) {
  // The log has its schema once its writer is open, which may be later than this thread.
  let log: { readonly db: ReturnType<typeof openForReading>; readonly reader: LogReader } | null = null
  const reader = (): LogReader => {
    if (log === null) {
      const db = openForReading(data.logFile, logMigrations)
      log = { db, reader: new LogReader(db) }
    }
    return log.reader
  }
  const sql = new SqliteSql(opened.catalogue)
  const operations: Operations = {
    ...catalogueOperations(new SqlCatalogue(sql)),
    ...queueOperations(new SqliteQueue(opened.catalogue)),
    ...trainerOperations(new SqlTrainerBook(sql)),
    'log.sessions': (...args: Parameters<LogReader['sessions']>) => reader().sessions(...args),
    'log.sessionKeys': (...args: Parameters<LogReader['sessionKeys']>) => reader().sessionKeys(...args),
    'log.sessionOfCall': (...args: Parameters<LogReader['sessionOfCall']>) => reader().sessionOfCall(...args),
    'log.mark': () => reader().mark(),
    'log.events': (...args: Parameters<LogReader['events']>) => reader().events(...args),
    'log.find': (...args: Parameters<LogReader['find']>) => {
      const found = reader().find(...args)
      return 'object' in found ? found : moved(found)
    },
    'log.unpack': (...args: Parameters<typeof readArchived>) => moved(readArchived(...args)),
    'log.unpackEvents': (...args: Parameters<typeof archivedEvents>) => archivedEvents(...args),
    'log.unarchived': (...args: Parameters<LogReader['unarchived']>) => reader().unarchived(...args),
    'log.finished': (...args: Parameters<LogReader['finished']>) => reader().finished(...args),
    'log.archivedSessions': (...args: Parameters<LogReader['archivedSessions']>) => reader().archivedSessions(...args),
    'log.archivedAmong': (...args: Parameters<LogReader['archivedAmong']>) => reader().archivedAmong(...args),
    'log.seal': (...args: Parameters<LogReader['seal']>) => {
      const sealed = reader().seal(...args)
      return sealed === null ? null : new Moved(sealed, [sealed.bytes.buffer])
    },
  }
  serveEach(port, damageNamed(conflictsNamed(operations)), () => {
    opened.catalogue.close()
    log?.db.close()
  })
}

function moved(found: SessionLog): Moved {
  const transfer = new Set<ArrayBuffer>()
  for (const { intent, commit } of found.calls) {
    move(transfer, intent.body)
    if (commit !== null) move(transfer, commit.reply)
  }
  return new Moved(found, [...transfer])
}

function move(transfer: Set<ArrayBuffer>, bytes: Uint8Array): void {
  if (bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength) transfer.add(bytes.buffer)
}
