import type { Database } from 'better-sqlite3'
import { PaddockError } from '../../core/index.ts'
import {
  Follower,
  type FollowedEntry,
  generationsOf,
  headBytes,
  isBefore,
  type Place,
  type Unreadable,
} from '../journal/index.ts'
import { Statements } from '../sqlite/index.ts'
import { readJournalRow, writeJournalRow } from './journal-row.ts'
import type { LogWriter } from './log-writer.ts'
import { entryOfLog, headText } from './read-entry.ts'

/** When a transaction ends although more is there: batch size hardly raises throughput but sets how long readers wait. */
const maxTransactionMs = 20
const maxTransactionBytes = 2 * 2 ** 20

/**
 * Takes the journal into the log. How far it came is part of each transaction, so that after a kill every entry is
 * ingested once. An entry that the log refuses is kept beside it with the reason: entries are checked before they are
 * written, so this is a fault that `paddock fsck` tells, and no reason to lose those behind it.
 */
export class Ingest {
  readonly #db: Database
  readonly #statements: Statements
  readonly #writer: LogWriter
  readonly #logFile: string
  readonly #follower: Follower
  #place: Place
  #open: boolean

  constructor(db: Database, writer: LogWriter, logFile: string) {
    this.#db = db
    this.#statements = new Statements(db)
    this.#writer = writer
    this.#logFile = logFile
    const { place, open } = readJournalRow(db)
    this.#place = place
    this.#open = open
    this.#follower = new Follower(logFile, this.#place)
  }

  /** What is ingested. */
  get place(): Place {
    return this.#place
  }

  /** Ingests everything that is there. */
  all(): void {
    while (this.#transaction(false, null)) {
      // Until nothing was there.
    }
  }

  /**
   * Ingests what a dead owner left. What cannot be read is kept in `refusals`, and what is whole behind it ingested.
   * Returns how many places could not be read.
   */
  left(): number {
    let damaged = 0
    for (;;) {
      this.all()
      const unreadable = this.#open ? this.#follower.unreadable() : null
      if (unreadable === null) return damaged
      damaged += 1
      this.#goBeyond(unreadable)
      const { generation } = unreadable.to
      if (generationsOf(this.#logFile).every((one) => one < generation)) return damaged
    }
  }

  /**
   * Ingests what was written up to a place, and does not run after a writer that goes on.
   * Throws `STORE_CORRUPT` where the journal does not reach that far.
   */
  upTo(end: Place): void {
    while (isBefore(this.#place, end)) {
      if (!this.#transaction(false, end)) {
        throw new PaddockError('STORE_CORRUPT', `the journal ends at ${this.#place.offset} and not at ${end.offset}`)
      }
    }
  }

  /** Goes on in another generation, which an owner writes from now on. */
  beginIn(generation: number): void {
    this.#place = { generation, offset: headBytes }
    this.#open = true
    this.#db.transaction(() => this.#store())()
    this.#follower.rewind(this.#place)
  }

  /** The owner writes nothing more, and everything is ingested. */
  close(): void {
    this.#open = false
    this.#place = { generation: this.#place.generation + 1, offset: headBytes }
    this.#db.transaction(() => this.#store())()
    this.#follower.close()
  }

  #goBeyond({ from, to, bytes, why }: Unreadable): void {
    const where = JSON.stringify({ op: 'journal', ...from, to: to.offset })
    this.#place = to
    this.#db.transaction(() => {
      this.#refuse(where, bytes, `journal ${from.generation} cannot be read at ${from.offset}: ${why}`)
      this.#store()
    })()
    this.#follower.rewind(to)
  }

  #refuse(head: string, bytes: Uint8Array | null, why: string): void {
    this.#statements.run('INSERT INTO refusals (head, bytes, why) VALUES (?, ?, ?)', head, bytes, why)
  }

  /** True when something was ingested, at most what stands before `end`. */
  #transaction(singly: boolean, end: Place | null): boolean {
    const before = this.#place
    const deadline = performance.now() + maxTransactionMs
    let bytes = 0
    this.#db.exec('BEGIN IMMEDIATE')
    try {
      for (let entry = this.#follower.next(); entry !== null; entry = this.#follower.next()) {
        if (singly) this.#orRefuse(entry)
        else this.#writer.write(entryOfLog(entry))
        this.#place = entry.end
        bytes += entry.sizeBytes
        if (singly || bytes >= maxTransactionBytes || performance.now() >= deadline) break
        // Looking for more would be a look at the directory.
        if (end !== null && !isBefore(entry.end, end)) break
      }
      if (this.#place !== before) {
        this.#writer.settle()
        this.#store()
      }
      this.#db.exec('COMMIT')
      return this.#place !== before
    } catch (error) {
      if (this.#db.inTransaction) this.#db.exec('ROLLBACK')
      this.#writer.forgetAll()
      this.#place = before
      this.#follower.rewind(before)
      // A full disk is not the entry's fault: it stays in the journal.
      if (singly) throw error
    }
    return this.#transaction(true, end)
  }

  #orRefuse(entry: FollowedEntry): void {
    this.#db.exec('SAVEPOINT entry')
    try {
      this.#writer.write(entryOfLog(entry))
      this.#writer.settle()
    } catch (error) {
      if (!this.#db.inTransaction || isOfTheDisk(error)) throw error
      this.#db.exec('ROLLBACK TO entry')
      this.#writer.forgetAll()
      const why = error instanceof Error ? error.message : String(error)
      const [first] = entry.parts
      this.#refuse(headText(entry), first === undefined ? null : Buffer.concat(entry.parts), why)
    }
    this.#db.exec('RELEASE entry')
  }

  #store(): void {
    writeJournalRow(this.#statements, { place: this.#place, open: this.#open, events: this.#writer.events })
  }
}

/** The disk's fault: full, read-only, or failing. */
export function isOfTheDisk(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN|BUSY|NOMEM)/.test(String(error.code))
  )
}
