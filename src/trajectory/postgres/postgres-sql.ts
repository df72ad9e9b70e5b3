import type { Dialect, Lockable, Sql } from '../sql/index.ts'
import type { Connection } from './connection.ts'
import type { Database } from './database.ts'

const dialect: Dialect = {
  // The moment of the statement, not of its transaction, which may have waited for a lock.
  now: 'floor(extract(epoch FROM clock_timestamp()) * 1000)::float8',
  list: '(SELECT unnest(?::text[]) AS value)',
  nextEvent: `nextval('run_events_seq')`,
  isPolicyEvent: `kind LIKE 'policy\\_%'`,
}

/** PostgreSQL as the shared texts see it. Outside a transaction only reads run, and writes that may be repeated. */
export class PostgresSql implements Sql {
  readonly dialect = dialect
  readonly #database: Database
  /** True where a transaction may be done again although it is unknown whether it took place. */
  readonly #repeatable: boolean

  constructor(database: Database, repeatable: boolean) {
    this.#database = database
    this.#repeatable = repeatable
  }

  all<Row extends object>(text: string, ...values: readonly unknown[]): Promise<readonly Row[]> {
    return this.#database.query<Row>(numbered(text), values, true)
  }

  list(values: readonly (string | number)[]): readonly string[] {
    return values.map(String)
  }

  transaction<T>(work: (inside: Sql) => Promise<T>): Promise<T> {
    return this.#database.transaction((connection) => work(new PostgresTransaction(connection)), this.#repeatable)
  }

  /** Outside a transaction nothing stays locked. */
  lock(): Promise<void> {
    return Promise.resolve()
  }
}

/** A transaction that goes on. */
export class PostgresTransaction implements Sql {
  readonly dialect = dialect
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  all<Row extends object>(text: string, ...values: readonly unknown[]): Promise<readonly Row[]> {
    return this.#connection.query<Row>(numbered(text), values)
  }

  list(values: readonly (string | number)[]): readonly string[] {
    return values.map(String)
  }

  transaction<T>(work: (inside: Sql) => Promise<T>): Promise<T> {
    return work(this)
  }

  async lock(table: Lockable, id: string): Promise<void> {
    // Rows that refer to this one may be written meanwhile: only who locks it too waits.
    await this.all(`SELECT 1 FROM ${table} WHERE id = ? FOR NO KEY UPDATE`, id)
  }
}

/** Parameters by number. None of our texts has a question mark that is none. */
function numbered(text: string): string {
  let known = texts.get(text)
  if (known === undefined) {
    let count = 0
    known = text.replaceAll('?', () => {
      count += 1
      return `$${count}`
    })
    texts.set(text, known)
  }
  return known
}
const texts = new Map<string, string>()
