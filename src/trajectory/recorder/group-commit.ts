import type { Database } from 'better-sqlite3'
import { perform, type Operations, type ThreadAnswer, type ThreadRequest, toWire } from '../sqlite/index.ts'

/** When a transaction ends although more is waiting: batch size hardly raises throughput but sets the stall. */
const maxTransactionMs = 10
const maxTransactionBytes = 2 * 2 ** 20

/** A port with what is already waiting on it. */
export interface Inbox {
  /** The next request that has arrived, undefined when none has. */
  next(): ThreadRequest | undefined
  answer(answers: readonly ThreadAnswer[]): void
}

/**
 * Runs `first` and what is waiting behind it in transactions, and answers each request after its COMMIT. An empty
 * inbox commits at once. A request that throws is undone alone; a COMMIT that fails fails its whole transaction.
 * Returns the request that asked to close, if one did.
 */
export class GroupCommit {
  readonly #db: Database
  readonly #operations: Operations
  readonly #undone: () => void

  constructor(db: Database, operations: Operations, undone: () => void) {
    this.#db = db
    this.#operations = operations
    this.#undone = undone
  }

  drain(first: ThreadRequest, inbox: Inbox): ThreadRequest | null {
    let request: ThreadRequest | undefined = first
    while (request !== undefined) {
      if (request.op === 'close') return request
      request = this.#transaction(request, inbox)
    }
    return null
  }

  /** Returns the request that belongs into the next transaction. */
  #transaction(first: ThreadRequest, inbox: Inbox): ThreadRequest | undefined {
    const answers: ThreadAnswer[] = []
    const deadline = performance.now() + maxTransactionMs
    let bytes = 0
    let request: ThreadRequest | undefined = first
    try {
      this.#db.exec('BEGIN IMMEDIATE')
      while (request !== undefined && request.op !== 'close') {
        answers.push(this.#one(request))
        bytes += sizeOf(request)
        request = inbox.next()
        if (bytes >= maxTransactionBytes || performance.now() >= deadline) break
      }
      this.#db.exec('COMMIT')
    } catch (error) {
      if (this.#db.inTransaction) this.#db.exec('ROLLBACK')
      this.#undone()
      const failed = toWire(error)
      // Nothing of the group is durable, also not what had gone well; `first` may have failed at BEGIN.
      const ids = answers.length === 0 ? [first.id] : answers.map((answer) => answer.id)
      inbox.answer(ids.map((id) => ({ id, ok: false, error: failed })))
      return answers.length === 0 ? inbox.next() : request
    }
    inbox.answer(answers)
    return request
  }

  #one(request: ThreadRequest): ThreadAnswer {
    this.#db.exec('SAVEPOINT request')
    try {
      const value = perform(this.#operations, request)
      this.#db.exec('RELEASE request')
      return { id: request.id, ok: true, value }
    } catch (error) {
      // A full disk ends the transaction by itself; then the group fails at COMMIT.
      if (this.#db.inTransaction) this.#db.exec('ROLLBACK TO request; RELEASE request')
      this.#undone()
      return { id: request.id, ok: false, error: toWire(error) }
    }
  }
}

function sizeOf(request: ThreadRequest): number {
  const size: unknown = request.args.at(-1)
  return typeof size === 'number' ? size : 0
}
