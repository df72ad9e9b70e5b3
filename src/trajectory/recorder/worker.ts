/** The writer thread of the log: takes the journal in, and tells what the log knows of a session or call. */
import { parentPort, workerData } from 'node:worker_threads'
import type { Id } from '../../core/index.ts'
import { generationsOf, type Place, removeBefore } from '../journal/index.ts'
import { openForWriting, sayHello, serveEach, type Synchronous } from '../sqlite/index.ts'
import { LogWriter } from './log-writer.ts'
import { Memory } from './memory.ts'
import { recover } from './recover.ts'
import { logMigrations } from './schema.ts'
import { TakeIn } from './take-in.ts'

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
  const takeIn = new TakeIn(db, writer, data.file)
  takeIn.all()
  const interruptedCalls = recover(db, writer, data.now)
  const generation = Math.max(takeIn.place.generation, ...generationsOf(data.file)) + 1
  takeIn.skipTo(generation)
  removeBefore(data.file, generation)
  const value: WriterHello = { interruptedCalls, generation }
  return { served: { db, takeIn }, value }
})

if (opened !== null) {
  const { db, takeIn } = opened
  const memory = new Memory(db)
  const caughtUp = (end: Place): void => {
    const { generation } = takeIn.place
    takeIn.upTo(end)
    if (takeIn.place.generation !== generation) removeBefore(data.file, takeIn.place.generation)
  }
  serveEach(
    port,
    {
      takeIn: (end: Place) => caughtUp(end),
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
      takeIn.all()
      takeIn.close()
      removeBefore(data.file, takeIn.place.generation + 1)
      db.pragma('wal_checkpoint(TRUNCATE)')
      db.close()
    },
  )
}
