/** The writer thread of the log: takes the journal in, and tells what the log knows of a session or call. */
import { parentPort, workerData } from 'node:worker_threads'
import type { Id } from '../../core/index.ts'
import { generationsOf, type Place, removeBefore } from '../journal/index.ts'
import { openForWriting, sayHello, serveEach, type Synchronous } from '../sqlite/index.ts'
import { LogWriter } from './log-writer.ts'
import { Memory } from './memory.ts'
import { recover } from './recover.ts'
import { logMigrations } from './schema.ts'
import { Ingest } from './ingest.ts'

/** What the thread needs to open. */
export interface WriterData {
  readonly file: string
  readonly synchronous: Synchronous
  readonly now: number
}

/** What it says once it is open. */
export interface WriterHello {
  readonly interruptedCalls: number
  /** The generation in which the journal goes on. */
  readonly generation: number
}

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
  const writer = new LogWriter(db)
  const ingest = new Ingest(db, writer, data.file)
  ingest.all()
  const interruptedCalls = recover(db, writer, data.now)
  const generation = Math.max(ingest.place.generation, ...generationsOf(data.file)) + 1
  ingest.skipTo(generation)
  removeBefore(data.file, generation)
  const value: WriterHello = { interruptedCalls, generation }
  return { served: { db, ingest }, value }
})

if (opened !== null) {
  const { db, ingest } = opened
  const memory = new Memory(db)
  const caughtUp = (end: Place): void => {
    const { generation } = ingest.place
    ingest.upTo(end)
    if (ingest.place.generation !== generation) removeBefore(data.file, ingest.place.generation)
  }
  serveEach(
    port,
    {
      ingest: (end: Place) => caughtUp(end),
      session: (end: Place, id: Id) => {
        caughtUp(end)
        return memory.session(id)
      },
      sessionOfCall: (end: Place, id: Id) => {
        caughtUp(end)
        return memory.sessionOfCall(id)
      },
      segmentLength: (end: Place, id: Id) => {
        caughtUp(end)
        return memory.segmentLength(id)
      },
    },
    () => {
      ingest.all()
      ingest.close()
      removeBefore(data.file, ingest.place.generation + 1)
      db.pragma('wal_checkpoint(TRUNCATE)')
      db.close()
    },
  )
}
