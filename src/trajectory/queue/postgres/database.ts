import { createHash } from 'node:crypto'
import pg from 'pg'
import { isPaddockError, PaddockError } from '../../../core/index.ts'

/** One connection, inside a transaction. */
export interface Connection {
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
}

/** What PostgreSQL rolled back for certain and what works when done again: a serialization failure, a deadlock. */
const again: ReadonlySet<string> = new Set(['40001', '40P01'])
const tries = 4

/** PostgreSQL behind a pool. A pool that lost its server connects anew with the next statement. */
export class Database {
  readonly #pool: pg.Pool

  constructor(url: string, connections: number) {
    this.#pool = new pg.Pool({
      connectionString: url,
      max: connections,
      application_name: 'paddock',
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
      // A statement that nobody waits for any more holds no row for long.
      statement_timeout: 30_000,
      idle_in_transaction_session_timeout: 30_000,
    })
    // An idle connection that the server closed. The pool has dropped it; who asks next gets another.
    this.#pool.on('error', () => undefined)
  }

  /** One statement, a transaction of its own. */
  async query<Row extends object>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return repeated(async () => (await this.#pool.query<Row>(prepared(text, values))).rows)
  }

  /**
   * All or nothing. What `work` reads, others may change until it locks it, as each statement sees what is committed by
   * then. `work` runs again after a deadlock.
   */
  async transaction<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    return repeated(async () => {
      const client = await this.#pool.connect()
      // Without a listener the end of a connection between two statements would end the process.
      const ignore = (): void => undefined
      client.on('error', ignore)
      let broken = true
      try {
        // Named, because the default of a database may be another.
        await client.query('BEGIN ISOLATION LEVEL READ COMMITTED')
        const result = await work({
          // One simple query may hold several statements, which a prepared one cannot: the steps of the schema.
          query: async <Row extends object>(text: string, values?: readonly unknown[]) =>
            (await client.query<Row>(values === undefined ? { text } : prepared(text, values))).rows,
        })
        await client.query('COMMIT')
        broken = false
        return result
      } catch (error) {
        broken = !(await client.query('ROLLBACK').then(
          () => true,
          () => false,
        ))
        throw error
      } finally {
        client.off('error', ignore)
        client.release(broken)
      }
    })
  }

  /** Lets what runs finish. */
  close(): Promise<void> {
    return this.#pool.end()
  }
}

function prepared(text: string, values: readonly unknown[]): pg.QueryConfig {
  let name = names.get(text)
  if (name === undefined) {
    name = `paddock_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
    names.set(text, name)
  }
  return { name, text, values: [...values] }
}
const names = new Map<string, string>()

async function repeated<T>(work: () => Promise<T>): Promise<T> {
  for (let left = tries - 1; ; left -= 1) {
    try {
      return await work()
    } catch (error) {
      if (left === 0 || !again.has(codeOf(error))) throw told(error)
    }
  }
}

function codeOf(error: unknown): string {
  return error instanceof pg.DatabaseError ? (error.code ?? '') : ''
}

/** As Paddock says it. Whether a statement took place is unknown when the connection went with it. */
function told(error: unknown): Error {
  if (isPaddockError(error)) return error
  const what = error instanceof Error ? error.message : String(error)
  const code = codeOf(error)
  // Without a code it is the connection, which the driver tells by many errors. Else: connections (08), too few of
  // something (53), an operator or a limit ended it (57), a lock was not to be had (55), a conflict that stayed (40).
  const passing = !(error instanceof pg.DatabaseError) || /^(08|53|57|55|40|25P0[34])/.test(code)
  return passing
    ? new PaddockError('QUEUE_UNAVAILABLE', `PostgreSQL: ${what}`, { cause: error })
    : new PaddockError('STORE_FAILED', `PostgreSQL refused a statement of the queue: ${what} (${code})`, {
        fix: 'See the cause; check that nobody changed the tables of the schema `paddock` and that the role may write them.',
        cause: error,
      })
}
