import { PaddockError } from '../../core/index.ts'
import { type Entry, type Frame, framePieces, Journal } from '../journal/index.ts'
import type { StoreThread, Synchronous, ThreadLimits } from '../sqlite/index.ts'

/** How long a fact may lie in the journal before the database gets it: what a reader of another process lags behind. */
const takeInEveryMs = 25
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

interface Held {
  readonly frame: Frame
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
  #held: Held[] = []
  /** Facts written so far, and those that the database has. */
  #written = { facts: 0, bytes: 0 }
  #taken = { facts: 0, bytes: 0 }
  #taking: Promise<void> | null = null
  #timer: NodeJS.Timeout | null = null
  #writesThisTurn = false
  #closing: Promise<void> | null = null

  constructor(
    thread: StoreThread,
    options: {
      readonly file: string
      readonly generation: number
      readonly synchronous: Synchronous
      readonly limits?: Partial<ThreadLimits>
    },
  ) {
    this.#thread = thread
    this.#journal = new Journal(options.file, options.generation)
    this.#durable = options.synchronous === 'full'
    this.#limits = { ...defaultLimits, ...options.limits }
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
   * or in one of the next where there are many. The entry's parts must stay as they are until then. Entries are written
   * in the order of the calls; one that nobody waits for (`soon`) is written with the next one, or with the next round.
   * Throws `STORE_*`.
   */
  async write(entry: Entry, when: 'now' | 'soon' = 'now'): Promise<void> {
    this.mustBeOpen()
    const frame = framePieces(entry)
    const written = new Promise<void>((resolve, reject) => {
      this.#held.push({ frame, resolve, reject })
    })
    if (when === 'now') this.#writeThisTurn()
    else this.#takeInSoon(takeInEveryMs)
    await written
    if (this.#durable) await this.#journal.synced()
  }

  /** Asks the writer thread, which takes everything in first. */
  async ask<Answer>(question: string, id: string): Promise<Answer> {
    this.mustBeOpen()
    this.#writeHeld()
    const before = { ...this.#written }
    const answer = await this.#thread.call(question, () => ({ args: [this.#journal.end, id] }))
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
    while (this.#taken.facts < wanted) await this.#takeIn()
  }

  #writeThisTurn(): void {
    if (this.#writesThisTurn) return
    this.#writesThisTurn = true
    setImmediate(() => {
      this.#writesThisTurn = false
      const wrote = this.#writeHeld(perTurn)
      if (wrote && this.#held.length > 0) this.#writeThisTurn()
      this.#takeInSoon(this.#held.length > 0 && !wrote ? 0 : takeInEveryMs)
    })
  }

  /** Writes what is held, as far as there is room and `most` allows, in one write. False: nothing was written. */
  #writeHeld(most: typeof perTurn = whatever): boolean {
    const frames: Frame[] = []
    let bytes = 0
    for (const { frame } of this.#held) {
      if (frames.length >= most.facts || bytes >= most.bytes || !this.#fits(frame.sizeBytes)) break
      frames.push(frame)
      bytes += frame.sizeBytes
      this.#written.facts += 1
      this.#written.bytes += frame.sizeBytes
    }
    if (frames.length === 0) return false
    try {
      this.#journal.appendAll(
        frames.flatMap(({ pieces }) => pieces),
        bytes,
      )
    } catch (error) {
      this.#written.facts -= frames.length
      this.#written.bytes -= bytes
      // A disk that has no room for all of them may have it for the first.
      if (frames.length > 1) return this.#writeHeld({ ...most, facts: 1 })
      this.#failHeld(error)
      return false
    }
    for (const { resolve } of this.#held.splice(0, frames.length)) resolve()
    return true
  }

  #fits(bytes: number): boolean {
    const { requests, bytes: under } = this.load
    return requests === 0 || (requests < this.#limits.maxRequests && under + bytes <= this.#limits.maxBytes)
  }

  #takeInSoon(ms: number): void {
    if (this.#taking !== null || this.#closing !== null) return
    if (this.#timer !== null && ms > 0) return
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#takeIn().catch((error: unknown) => this.#failHeld(error))
    }, ms)
    this.#timer.unref()
  }

  /** One round at a time; a call during a round is the round. */
  #takeIn(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#taking ??= this.#round().finally(() => {
      this.#taking = null
      if (this.#held.length > 0) this.#takeInSoon(0)
      else if (this.#written.facts > this.#taken.facts && this.#closing === null) this.#takeInSoon(takeInEveryMs)
    })
    return this.#taking
  }

  async #round(): Promise<void> {
    this.#writeHeld()
    const before = { ...this.#written }
    await this.#thread.call('takeIn', () => ({ args: [this.#journal.end] }))
    this.#took(before)
  }

  #took(until: { readonly facts: number; readonly bytes: number }): void {
    if (until.facts > this.#taken.facts) this.#taken = { ...until }
    if (this.#held.length > 0) this.#writeThisTurn()
  }

  /** What waits cannot be written: whoever waits is told, nothing of it was promised. */
  #failHeld(error: unknown): void {
    for (const { reject } of this.#held.splice(0)) reject(error)
  }
}
