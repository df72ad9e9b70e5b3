import type { Database, Statement } from 'better-sqlite3'

/** Prepares once, then reuses. */
export class Statements {
  readonly #db: Database
  readonly #prepared = new Map<string, Statement>()

  constructor(db: Database) {
    this.#db = db
  }

  /** Runs a write. Returns the rowid of an insert. */
  run(sql: string, ...values: readonly unknown[]): number {
    return Number(this.#of(sql).run(...values).lastInsertRowid)
  }

  /** The first row as the caller knows the schema to give it. */
  get<Row>(sql: string, ...values: readonly unknown[]): Row | undefined {
    return this.#of(sql).get(...values) as Row | undefined
  }

  /** All rows as the caller knows the schema to give them. */
  all<Row>(sql: string, ...values: readonly unknown[]): Row[] {
    return this.#of(sql).all(...values) as Row[]
  }

  /** The rows of any statement: none of one that gives none. */
  rows<Row>(sql: string, ...values: readonly unknown[]): Row[] {
    const statement = this.#of(sql)
    if (statement.reader) return statement.all(...values) as Row[]
    statement.run(...values)
    return []
  }

  /** Rows one by one. */
  each<Row>(sql: string, ...values: readonly unknown[]): IterableIterator<Row> {
    return this.#of(sql).iterate(...values) as IterableIterator<Row>
  }

  #of(sql: string): Statement {
    let statement = this.#prepared.get(sql)
    if (statement === undefined) {
      statement = this.#db.prepare(sql)
      this.#prepared.set(sql, statement)
    }
    return statement
  }
}
