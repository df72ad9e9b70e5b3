import type { Database } from 'better-sqlite3'
import { Statements } from '../sqlite/index.ts'
import type { Dialect, Sql } from './sql.ts'

const dialect: Dialect = {
  now: `(unixepoch('subsec') * 1000.0)`,
  list: '(SELECT value FROM json_each(?))',
  nextEvent: '(SELECT coalesce(max(seq), 0) + 1 FROM run_events)',
  isPolicyEvent: `kind GLOB 'policy_*'`,
}

/**
 * A connection to SQLite. Nothing in it waits for anything but itself, so a transaction takes no more than one turn of the
 * event loop; whoever owns the connection begins one after the other.
 */
export class SqliteSql implements Sql {
  readonly dialect = dialect
  readonly #db: Database
  readonly #statements: Statements

  constructor(db: Database) {
    this.#db = db
    this.#statements = new Statements(db)
  }

  async all<Row extends object>(text: string, ...values: readonly unknown[]): Promise<readonly Row[]> {
    return this.#statements.rows<Row>(text, ...values)
  }

  list(values: readonly (string | number)[]): string {
    return JSON.stringify(values)
  }

  async transaction<T>(work: (inside: Sql) => Promise<T>): Promise<T> {
    if (this.#db.inTransaction) return work(this)
    this.#db.exec('BEGIN IMMEDIATE')
    try {
      const result = await work(this)
      this.#db.exec('COMMIT')
      return result
    } catch (error) {
      // SQLite ends a transaction by itself where it cannot go on.
      if (this.#db.inTransaction) this.#db.exec('ROLLBACK')
      throw error
    }
  }

  lock(): Promise<void> {
    return Promise.resolve()
  }
}
