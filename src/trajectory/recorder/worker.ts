/** The writer thread of the log. */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { CallCommit, CallIntent, Delivery, SessionRecord } from '../contract.ts'
import type { Event, Id } from '../../core/index.ts'
import { conflictsNamed, openForWriting, sayHello, type Synchronous, type ThreadRequest } from '../sqlite/index.ts'
import { GroupCommit } from './group-commit.ts'
import { LogWriter } from './log-writer.ts'
import { recover } from './recover.ts'
import { logMigrations } from './schema.ts'

/** What the thread needs to open. */
export interface WriterData {
  readonly file: string
  readonly synchronous: Synchronous
  readonly now: number
}

const port = parentPort
if (port === null) throw new Error('this file is a worker thread of the store')
// Written by openRecorder and by nothing else.
const data = workerData as WriterData

const db = sayHello(port, () => {
  const opened = openForWriting(data.file, {
    synchronous: data.synchronous,
    migrations: logMigrations,
    now: data.now,
    pageBytes: 1024,
  })
  return { served: opened, value: { interruptedCalls: recover(opened, data.now) } }
})

if (db !== null) {
  const writer = new LogWriter(db)
  const commits = new GroupCommit(
    db,
    conflictsNamed({
      openSession: (session: SessionRecord) => writer.openSession(session),
      closeSession: (id: Id, at: number) => writer.closeSession(id, at),
      beginCall: (intent: CallIntent) => writer.beginCall(intent),
      commitCall: (commit: CallCommit) => writer.commitCall(commit),
      settleDelivery: (callId: Id, delivery: Delivery) => writer.settleDelivery(callId, delivery),
      supersede: (callId: Id, by: Id) => writer.supersede(callId, by),
      appendEvent: (event: Event) => writer.appendEvent(event),
      flush: () => undefined,
    }),
    () => writer.forgetAll(),
  )
  const inbox = {
    next: (): ThreadRequest | undefined => {
      const received: { message: ThreadRequest } | undefined = receiveMessageOnPort(port)
      return received?.message
    },
    answer: (answers: unknown): void => port.postMessage(answers),
  }
  port.on('message', (request: ThreadRequest) => {
    const close = commits.drain(request, inbox)
    if (close === null) return
    db.pragma('wal_checkpoint(TRUNCATE)')
    db.close()
    port.postMessage([{ id: close.id, ok: true, value: null }])
    port.close()
  })
}
