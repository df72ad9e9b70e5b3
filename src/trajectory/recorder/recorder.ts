import { type Event, type Id, isPaddockError, PaddockError } from '../../core/index.ts'
import type {
  CallCommit,
  CallIntent,
  Delivery,
  Recorder,
  RecorderReader,
  SessionLog,
  SessionRecord,
  Store,
} from '../contract/index.ts'
import { StoreThread, type Synchronous, type ThreadLimits } from '../sqlite/index.ts'
import type { ArchivedObject } from './archived.ts'
import { encodeTexts } from './bodies.ts'
import { commitEntry, deliveryEntry, intentEntry } from './entries.ts'
import { intentFacts } from './facts.ts'
import { type CallLedger, Ledger, type SessionLedger } from './ledger.ts'
import type { RememberedSession } from './memory.ts'
import { Outbox, type OutboxLoad } from './outbox.ts'
import { framesOf, type WholeSessions } from './whole-sessions.ts'
import type { WriterData, WriterHello } from './worker.ts'

/** How the log is opened by its owner. */
export interface RecorderOptions {
  readonly file: string
  /** Where the log is remembered. */
  readonly catalogueFile: string
  readonly synchronous: Synchronous
  /** Milliseconds since the epoch: the end of calls that recovery finds in flight. */
  readonly now: number
  readonly limits?: Partial<ThreadLimits>
}

/** The recorder over its journal and its writer thread. */
export interface OpenedRecorder extends Recorder {
  /** Facts that are not yet in the database, and those that are not yet written. */
  readonly load: OutboxLoad
  /**
   * Takes the records of a finished session out of the log; its object is safe by now, and named by the catalogue. False: it went
   * on since it was sealed.
   */
  archive(sealed: ArchivedObject & { readonly id: Id }): Promise<boolean>
}

/**
 * Opens the log for writing, brings its schema forward, ingests what the last owner left in the journal and runs
 * recovery. Throws `STORE_SCHEMA`, `STORE_CORRUPT`. `makeReader` runs once the file has its schema;
 * reads go there, over another connection, so that a long read never holds a commit up.
 */
export async function openRecorder(
  options: RecorderOptions,
  makeReader: () => Promise<RecorderReader>,
): Promise<{ recorder: OpenedRecorder; recovered: Store['recovered'] }> {
  const data: WriterData = {
    file: options.file,
    catalogueFile: options.catalogueFile,
    synchronous: options.synchronous,
    now: options.now,
  }
  const url = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url)
  const { thread, value } = await StoreThread.start(url, data)
  const { interruptedCalls, damaged, generation } = value as WriterHello
  try {
    const ledger = new Ledger()
    // What is in mind may be more than what is written.
    const outbox = new Outbox(thread, { ...options, generation, failed: () => ledger.forgetAll() })
    return {
      recorder: new JournalRecorder(outbox, ledger, await makeReader()),
      recovered: { interruptedCalls, damaged },
    }
  } catch (error) {
    await thread.close()
    throw error
  }
}

/**
 * Facts go into the journal and are durable then; the writer thread takes them into the database behind our back, many
 * to a transaction. Reads wait until everything accepted is there.
 */
class JournalRecorder implements OpenedRecorder {
  readonly #outbox: Outbox
  readonly #reader: RecorderReader
  readonly #ledger: Ledger
  readonly #recalling = new Map<Id, Promise<SessionLedger>>()
  /** One after the other: each looks for what is there before it writes. */
  #takingIn: Promise<void> = Promise.resolve()

  constructor(outbox: Outbox, ledger: Ledger, reader: RecorderReader) {
    this.#outbox = outbox
    this.#ledger = ledger
    this.#reader = reader
  }

  get load(): OutboxLoad {
    return this.#outbox.load
  }

  async openSession(session: SessionRecord): Promise<void> {
    this.#outbox.mustBeOpen()
    this.#ledger.opened(session)
    await this.#outbox.write({ head: { op: 'openSession', session }, parts: [] })
  }

  /** Resolves when the session is in the database whole: from then on every reader sees all of it. */
  async closeSession(id: Id, at: number): Promise<void> {
    const session = this.#ledger.session(id) ?? (await this.#recall(id))
    if (session.closed) return
    session.closed = true
    await this.#outbox.write({ head: { op: 'closeSession', id, at }, parts: [] })
    this.#ledger.forget(session)
    await this.flush()
  }

  // The three facts of every call: where the session is in mind, the outbox's promise is the only one.

  beginCall(intent: CallIntent): Promise<void> {
    try {
      this.#outbox.mustBeOpen()
      const session = this.#ledger.session(intent.sessionId)
      if (session !== undefined) return this.#begin(session, intent)
      return this.#recall(intent.sessionId).then((recalled) => this.#begin(recalled, intent))
    } catch (error) {
      return rejected(error)
    }
  }

  commitCall(commit: CallCommit): Promise<void> {
    try {
      this.#outbox.mustBeOpen()
      const call = this.#ledger.call(commit.callId)
      if (call !== undefined) return this.#commit(call, commit)
      return this.#recallBy(commit.callId).then((recalled) => this.#commit(recalled, commit))
    } catch (error) {
      return rejected(error)
    }
  }

  settleDelivery(callId: Id, delivery: Delivery): Promise<void> {
    try {
      if (this.#ledger.call(callId) !== undefined) return this.#settle(callId, delivery)
      return this.#sessionIdOf(callId).then(() => this.#settle(callId, delivery))
    } catch (error) {
      return rejected(error)
    }
  }

  async supersede(callId: Id, by: Id): Promise<void> {
    const call = this.#ledger.call(callId) ?? (await this.#recallBy(callId))
    this.#ledger.superseded(call, callId)
    await this.#outbox.write({ head: { op: 'supersede', id: callId, by }, parts: [] })
  }

  async appendEvent(event: Event): Promise<void> {
    await this.#outbox.write({ head: { op: 'appendEvent', event }, parts: [] })
  }

  async takeIn(sessions: readonly SessionLog[], events: readonly Event[]): Promise<void> {
    const earlier = this.#takingIn
    const taken = earlier.then(() => this.#takeIn({ sessions, events }))
    this.#takingIn = taken.catch(() => {})
    await taken
  }

  archive({ id, object, count, head }: ArchivedObject & { readonly id: Id }): Promise<boolean> {
    return this.#outbox.ask<boolean>('archive', { id, object, count, head })
  }

  flush(): Promise<void> {
    return this.#outbox.flush()
  }

  async sessions(...args: Parameters<RecorderReader['sessions']>): ReturnType<RecorderReader['sessions']> {
    await this.flush()
    return this.#reader.sessions(...args)
  }

  async sessionKeys(...args: Parameters<RecorderReader['sessionKeys']>): ReturnType<RecorderReader['sessionKeys']> {
    await this.flush()
    return this.#reader.sessionKeys(...args)
  }

  async sessionOfCall(
    ...args: Parameters<RecorderReader['sessionOfCall']>
  ): ReturnType<RecorderReader['sessionOfCall']> {
    await this.flush()
    return this.#reader.sessionOfCall(...args)
  }

  async session(...args: Parameters<RecorderReader['session']>): ReturnType<RecorderReader['session']> {
    await this.flush()
    return this.#reader.session(...args)
  }

  async events(...args: Parameters<RecorderReader['events']>): ReturnType<RecorderReader['events']> {
    await this.flush()
    return this.#reader.events(...args)
  }

  async mark(): Promise<string> {
    await this.flush()
    return this.#reader.mark()
  }

  async close(): Promise<void> {
    await this.#outbox.close()
    await this.#reader.close()
  }

  async #takeIn(whole: WholeSessions): Promise<void> {
    for (const { session, calls } of whole.sessions) {
      await this.#mustBeNew(this.#outbox.ask('session', session.id), `session ${session.id}`)
      for (const { intent } of calls) await this.#mustBeNew(this.#sessionIdOf(intent.id), `call ${intent.id}`)
    }
    const { foreign } = framesOf(whole)
    const lengths = await this.#lengthsOf(foreign)
    const { frames, foreign: missing } = framesOf(whole, lengths)
    if (missing[0] !== undefined) throw nowhere(missing[0])
    await this.#outbox.write({ head: { op: 'takeIn' }, parts: frames })
    await this.flush()
  }

  async #mustBeNew(asked: Promise<unknown>, what: string): Promise<void> {
    try {
      await asked
    } catch (error) {
      if (isPaddockError(error) && error.code === 'NOT_FOUND') return
      throw error
    }
    throw new PaddockError('STORE_CONFLICT', `${what} is in this store already`)
  }

  #begin(session: SessionLedger, intent: CallIntent): Promise<void> {
    this.#ledger.checkIntent(session, intent)
    session.facts = intentFacts(intent, session.facts)
    const texts = { facts: session.facts.text, body: kept(intent.body) }
    const stored = encodeTexts(texts, session.recent)
    this.#ledger.began(session, intent, texts, stored)
    return this.#outbox.write(intentEntry(intent, stored))
  }

  #commit(call: CallLedger, commit: CallCommit): Promise<void> {
    const unknown = this.#ledger.checkCommit(call, commit, nothing)
    if (unknown.length > 0) return this.#lookUp(call, commit, unknown).then(() => this.#writeCommit(call, commit))
    return this.#writeCommit(call, commit)
  }

  #writeCommit(call: CallLedger, commit: CallCommit): Promise<void> {
    const entry = commitEntry(commit)
    this.#ledger.committed(call, commit)
    return this.#outbox.write(entry)
  }

  #settle(callId: Id, delivery: Delivery): Promise<void> {
    return this.#outbox.write(deliveryEntry(callId, delivery), 'soon')
  }

  /** One question for all that wait for the same session. */
  #recall(id: Id): Promise<SessionLedger> {
    const asked = this.#recalling.get(id)
    if (asked !== undefined) return asked
    const recalling = this.#outbox
      .ask<RememberedSession>('session', id)
      .then((remembered) => this.#ledger.recalled(id, remembered))
      .finally(() => this.#recalling.delete(id))
    this.#recalling.set(id, recalling)
    return recalling
  }

  async #recallBy(callId: Id): Promise<CallLedger> {
    const session = await this.#recall(await this.#sessionIdOf(callId))
    // What was recalled may have been dropped again.
    return this.#ledger.call(callId) ?? { session, committed: false, superseded: false }
  }

  #sessionIdOf(callId: Id): Promise<Id> {
    return this.#outbox.ask<Id>('sessionOfCall', callId)
  }

  /** Parents and prompt leaves of other sessions. Throws `STORE_CONFLICT` where there are none of that id. */
  async #lookUp(call: CallLedger, commit: CallCommit, unknown: readonly Id[]): Promise<void> {
    const [missing] = this.#ledger.checkCommit(call, commit, await this.#lengthsOf(unknown))
    if (missing !== undefined) throw nowhere(missing)
  }

  async #lengthsOf(segments: readonly Id[]): Promise<ReadonlyMap<Id, number>> {
    const lengths = new Map<Id, number>()
    for (const id of segments) {
      const length = await this.#outbox.ask<number | null>('segmentLength', id)
      if (length !== null) lengths.set(id, length)
    }
    return lengths
  }
}

const nothing: ReadonlyMap<Id, number> = new Map()

function nowhere(segment: Id): PaddockError {
  return new PaddockError('STORE_CONFLICT', `there is no segment ${segment} to hang on`)
}

function rejected(error: unknown): Promise<never> {
  return Promise.reject(error instanceof Error ? error : new Error(String(error)))
}

/** The bytes for as long as the session lives: a small view must not hold a large buffer. */
function kept(body: Uint8Array): Uint8Array {
  return body.buffer.byteLength > 2 * body.byteLength + 1024 ? new Uint8Array(body) : body
}
