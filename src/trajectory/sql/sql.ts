/** What the catalogue and the trainer's book ask of a database: one text of SQL for SQLite and PostgreSQL. */

/** What the two say differently. */
export interface Dialect {
  /** The database's own clock when the statement runs, milliseconds since the epoch. */
  readonly now: string
  /** A relation with one column `value`: the members of one parameter that {@link Sql.list} made. */
  readonly list: string
  /** The number of the next event of a run: higher than those of all that are committed. */
  readonly nextEvent: string
  /** True for events of a run's weights, in the words of their index. */
  readonly isPolicyEvent: string
}

/** A table with rows that are locked by their id. */
export type Lockable = 'runs' | 'groups' | 'rollouts'

/** A database, or a transaction that goes on. Parameters are `?`. */
export interface Sql {
  readonly dialect: Dialect
  /** Runs a statement; rows are as the caller knows the schema to give them. */
  all<Row extends object>(text: string, ...values: readonly unknown[]): Promise<readonly Row[]>
  /** A parameter for {@link Dialect.list}. */
  list(values: readonly (string | number)[]): unknown
  /**
   * All or nothing. `work` uses the database that it is given and nothing else: it may run again where the first time came
   * to nothing. Inside a transaction it is a part of that one.
   */
  transaction<T>(work: (inside: Sql) => Promise<T>): Promise<T>
  /**
   * Keeps others from writing what hangs on these rows until the transaction ends. Rollouts before groups before runs, so that nobody waits for
   * one who waits. SQLite has one writer at a time anyway.
   */
  lock(table: Lockable, id: string): Promise<void>
}

/** The first row. */
export async function first<Row extends object>(
  sql: Sql,
  text: string,
  ...values: readonly unknown[]
): Promise<Row | undefined> {
  return (await sql.all<Row>(text, ...values))[0]
}
