import { PaddockError } from '../../core/index.ts'
import { type Entry, FrameQueue, Journal } from '../journal/index.ts'
import type { StoreThread, Synchronous, ThreadLimits } from '../sqlite/index.ts'

/**
 * How long a fact may lie in the journal before the database gets it: what a reader of another process lags behind. A
 * round costs both threads a waking and the database a transaction, whose pages are fewer the more calls they hold.
 */
const ingestEveryMs = 200
/** The database gets what lies in the journal sooner where it is as much as this: a transaction. */
const ingestAt = { facts: 4096, bytes: 2 * 2 ** 20 }
/** How long a fact that nobody waits for may lie unwritten. */
const writeSoonMs = 25
/**
 * How much is written, and thereby let go on, in one turn of the event loop: whoever waited goes on in that turn, so this
 * bounds how long the loop stands still where many calls came at once.
 */
const perTurn = { facts: 16, bytes: 2 ** 20 }
const defaultLimits: ThreadLimits = { maxBytes: 64 * 2 ** 20, maxRequests: 65_536 }

const whatever: typeof perTurn = { facts: Infinity, bytes: Infinity }

/** How much is between the callers and the database. */
export interface OutboxLoad {
  /** Written facts that the database does not have yet, and their bytes. */
  readonly requests: number
  readonly bytes: number
  /** Facts that wait for room in the journal. */
  readonly waiting: number
}

/** Whoever waits for a frame. */
interface Held {
  readonly sizeBytes: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * The way of facts to the disk: into the journal at once, into the database soon. Above its limits a fact waits for the
 * writer thread (back-pressure on the caller's await); nothing is ever dropped.
 */
export class Outbox {
  readonly #thread: StoreThread
  readonly #journal: Journal
  readonly #durable: boolean
  readonly #limits: ThreadLimits
  readonly #failed: () => void
  /** One for each frame of the queue. */
  #held: Held[] = []
  readonly #frames = new FrameQueue()
  /** Facts written so far, and those that the database has. */
  #written = { facts: 0, bytes: 0 }
  #taken = { facts: 0, bytes: 0 }
  #taking: Promise<void> | null = null
  #timer: NodeJS.Timeout | null = null
  #writesSoon = false
  #writesThisTurn = false
  #closing: Promise<void> | null = null

  constructor(
    thread: StoreThread,
    options: {
      readonly file: string
      readonly generation: number
      readonly synchronous: Synchronous
      readonly limits?: Partial<ThreadLimits>
      /** Told before whoever waits is: what was said of facts that are not written is not so. */
      readonly failed: () => void
    },
  ) {
    this.#thread = thread
    this.#journal = new Journal(options.file, options.generation)
    this.#durable = options.synchronous === 'full'
    this.#limits = { ...defaultLimits, ...options.limits }
    this.#failed = options.failed
  }

  get load(): OutboxLoad {
    return {
      requests: this.#written.facts - this.#taken.facts,
      bytes: this.#written.bytes - this.#taken.bytes,
      waiting: this.#held.length,
    }
  }

  /** Throws `STORE_CLOSED`. */
  mustBeOpen(): void {
    if (this.#closing !== null) throw new PaddockError('STORE_CLOSED', 'the store is closed')
  }

  /**
   * Resolves when the entry is durable: at the end of this turn of the event loop, in one write with others of the turn,
   * or in one of the next where there are many. What the entry holds is copied. Entries are written
   * in the order of the calls; one that nobody waits for (`soon`) is written with the next one, or a moment later.
   * Throws `STORE_CLOSED`, rejects with `STORE_*`.
   */
  write(entry: Entry, when: 'now' | 'soon' = 'now'): Promise<void> {
    this.mustBeOpen()
    const sizeBytes = this.#frames.push(entry)
    const written = new Promise<void>((resolve, reject) => {
      this.#held.push({ sizeBytes, resolve, reject })
    })
    if (when === 'now') this.#writeThisTurn()
    else this.#writeSoon()
    return this.#durable ? this.#synced(written) : written
  }

  /** Asks the writer thread, which takes everything in first. */
  async ask<Answer>(question: string, of: unknown): Promise<Answer> {
    this.mustBeOpen()
    this.#writeHeld()
    const before = { ...this.#written }
    const answer = await this.#thread.call(question, () => ({ args: [this.#journal.end, of] }))
    this.#took(before)
    // Typed where the thread answers.
    return answer as Answer
  }

  /** Resolves when the database has everything that was accepted so far. */
  async flush(): Promise<void> {
    this.mustBeOpen()
    await this.#flush()
  }

  /** Lets everything accepted finish, then ends the thread and removes the journal. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    try {
      await this.#flush()
    } finally {
      if (this.#timer !== null) clearTimeout(this.#timer)
      this.#journal.close()
      await this.#thread.close()
    }
  }

  async #flush(): Promise<void> {
    const wanted = this.#written.facts + this.#held.length
    while (this.#taken.facts < wanted) await this.#ingest()
  }

  async #synced(written: Promise<void>): Promise<void> {
    await written
    try {
      await this.#journal.synced()
    } catch (error) {
      this.#failed()
      throw error
    }
  }

  #writeSoon(): void {
    if (this.#writesSoon) return
    this.#writesSoon = true
    setTimeout(() => {
      this.#writesSoon = false
      if (this.#held.length > 0) this.#writeThisTurn()
    }, writeSoonMs).unref()
  }

  #writeThisTurn(): void {
    if (this.#writesThisTurn) return
    this.#writesThisTurn = true
    setImmediate(() => {
      this.#writesThisTurn = false
      const wrote = this.#writeHeld(perTurn)
      if (wrote && this.#held.length > 0) this.#writeThisTurn()
      this.#ingestSoon((this.#held.length > 0 && !wrote) || this.#isMuch() ? 0 : ingestEveryMs)
    })
  }

  /** Writes what is held, as far as there is room and `most` allows, in one write. False: nothing was written. */
  #writeHeld(most: typeof perTurn = whatever): boolean {
    let facts = 0
    let bytes = 0
    for (const { sizeBytes } of this.#held) {
      if (facts >= most.facts || bytes >= most.bytes || !this.#fits(facts, bytes + sizeBytes)) break
      facts += 1
      bytes += sizeBytes
    }
    if (facts === 0) return false
    try {
      this.#journal.append(this.#frames.first(bytes))
    } catch (error) {
      // A disk that has no room for all of them may have it for the first.
      if (facts > 1) return this.#writeHeld({ ...most, facts: 1 })
      this.#failHeld(error)
      return false
    }
    this.#frames.drop(bytes)
    this.#written.facts += facts
    this.#written.bytes += bytes
    const held = this.#held
    this.#held = facts === held.length ? [] : held.slice(facts)
    for (let place = 0; place < facts; place += 1) held[place]?.resolve()
    return true
  }

  /** Whether one more fact has room behind `facts` that are about to be written; `bytes` are of all of them. */
  #fits(facts: number, bytes: number): boolean {
    const under = this.#written.facts + facts - this.#taken.facts
    if (under === 0) return true
    return under < this.#limits.maxRequests && this.#written.bytes + bytes - this.#taken.bytes <= this.#limits.maxBytes
  }

  #isMuch(): boolean {
    return (
      this.#written.facts - this.#taken.facts >= ingestAt.facts ||
      this.#written.bytes - this.#taken.bytes >= ingestAt.bytes
    )
  }

  #ingestSoon(ms: number): void {
    if (this.#taking !== null || this.#closing !== null) return
    if (this.#timer !== null && ms > 0) return
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#ingest().catch((error: unknown) => this.#failHeld(error))
    }, ms)
    this.#timer.unref()
  }

  /** One round at a time; a call during a round is the round. */
  #ingest(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#taking ??= this.#round().finally(() => {
      this.#taking = null
      if (this.#held.length > 0) this.#ingestSoon(0)
      else if (this.#written.facts > this.#taken.facts && this.#closing === null) this.#ingestSoon(ingestEveryMs)
    })
    return this.#taking
  }

  async #round(): Promise<void> {
    this.#writeHeld()
    const before = { ...this.#written }
    await this.#thread.call('ingest', () => ({ args: [this.#journal.end] }))
    this.#took(before)
  }

  #took(until: { readonly facts: number; readonly bytes: number }): void {
    if (until.facts > this.#taken.facts) this.#taken = { ...until }
    if (this.#held.length > 0) this.#writeThisTurn()
  }

  /** What waits cannot be written: whoever waits is told, nothing of it was promised. */
  #failHeld(error: unknown): void {
    this.#failed()
    this.#frames.clear()
    for (const { reject } of this.#held.splice(0)) reject(error)
  }
}
