import Database from 'better-sqlite3'
import type { Turn } from './conversation.ts'

/** The baseline: whole snapshots as JSON, written in the event loop, each in its own transaction. */
export class Naive {
  readonly #db: Database.Database
  readonly #insert: Database.Statement

  constructor(file: string) {
    this.#db = new Database(file)
    this.#db.pragma('journal_mode = WAL')
    this.#db.pragma('synchronous = NORMAL')
    this.#db.exec('CREATE TABLE calls (snapshot TEXT NOT NULL)')
    this.#insert = this.#db.prepare('INSERT INTO calls VALUES (?)')
  }

  write(turn: Turn): void {
    this.#insert.run(
      JSON.stringify({
        request: turn.body,
        prompt_token_ids: Array.from(turn.prompt),
        token_ids: Array.from(turn.sampled),
        logprobs: Array.from(turn.logprobs),
        response: Buffer.from(turn.reply).toString(),
      }),
    )
  }

  close(): void {
    this.#db.close()
  }
}
