import { createHash } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { type ErrorCode, isPaddockError, PaddockError } from '../../core/index.ts'
import type { Connection } from './connection.ts'
import { migrate, requireSchema } from './schema.ts'
import { requireSessionMode } from './session-mode.ts'
import { fromStored, toStored } from './text.ts'

/** Who may refuse to go on with a server. */
export interface ConnectionGuard {
  /** Throws once that is so. */
  requireSame(): void
  /** Asks over a new connection. */
  look(ask: (text: string) => Promise<{ readonly rows: readonly unknown[] }>): Promise<void>
}

export interface DatabaseOptions {
  /** `postgres://user@host:5432/database`; a socket is `postgres://user@/database?host=/folder`. */
  readonly url: string
  readonly connections: number
  /** What it is called where it does not answer. */
  readonly unavailable: Extract<ErrorCode, `${string}_UNAVAILABLE`>
  /** How long a call waits for a server that is away, such as one that restarts. Milliseconds. */
  readonly patienceMs: number
  /** False for who only reads: the schema must be there as it is. */
  readonly migrates: boolean
  /** Looks at each new connection. */
  readonly guard?: ConnectionGuard | undefined
}

/** What PostgreSQL rolled back for certain and what works when done again: a serialization failure, a deadlock. */
const again: ReadonlySet<string> = new Set(['40001', '40P01'])
const tries = 4
/** Between two tries of a server that is away. */
const pauseMs = 100
/**
 * Set when a connection is there, not in its startup message, which a pooler refuses by default. A statement that nobody waits
 * for any more holds no row for long.
 */
const setUp =
  'SET search_path TO paddock; SET statement_timeout = 30000; SET idle_in_transaction_session_timeout = 30000'

/** Numbers that the driver gives as text: `int8` and `numeric`. Ours are exact below 2^53. */
const numbers: ReadonlySet<number> = new Set([20, 1700])
const texts: ReadonlySet<number> = new Set([25, 1043])
export const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary'): unknown => {
    if (numbers.has(oid)) return Number
    if (texts.has(oid)) return fromStored
    return pg.types.getTypeParser(oid, format)
  },
}

/** Whether a try may have taken place. */
interface Attempt {
  isUnknown: boolean
}

/** PostgreSQL behind a pool. A pool that lost its server connects anew with the next statement. */
export class Database {
  readonly #pool: pg.Pool
  readonly #options: DatabaseOptions
  /** Connections that know where the tables are. */
  readonly #ready = new WeakSet<pg.PoolClient>()
  #isSessionMode = false
  #patienceMs = 0

  /**
   * Connects and brings the schema forward. Throws the code for a server that does not answer, `STORE_SCHEMA` when a newer
   * Paddock wrote the schema, and `CONFIG_INVALID` behind a pooler in transaction mode.
   */
  static async open(options: DatabaseOptions): Promise<Database> {
    const database = new Database(options)
    try {
      // Each of its steps is done or not.
      await database.transaction(options.migrates ? migrate : requireSchema, true)
      // One that does not answer at the start is told at once.
      database.#patienceMs = options.patienceMs
      return database
    } catch (error) {
      await database.close()
      throw error
    }
  }

  private constructor(options: DatabaseOptions) {
    this.#options = options
    this.#pool = new pg.Pool({
      connectionString: options.url,
      max: options.connections,
      application_name: 'paddock',
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
      types,
    })
    // An idle connection that the server closed. The pool has dropped it; who asks next gets another.
    this.#pool.on('error', () => undefined)
  }

  /** One statement, a transaction of its own. `repeatable`: it may be done again where it is unknown whether it took place. */
  async query<Row extends object>(
    text: string,
    values: readonly unknown[] = [],
    repeatable = false,
  ): Promise<readonly Row[]> {
    return this.#repeated(repeatable, (attempt) =>
      this.#connected(async (client) => {
        attempt.isUnknown = true
        return (await client.query<Row>(prepared(text, values))).rows
      }),
    )
  }

  /**
   * All or nothing. What `work` reads, others may change until it locks it, as each statement sees what is committed by
   * then. `work` runs again after a deadlock, and where its connection went before it was committed; with `repeatable` also
   * where it is unknown whether it was.
   */
  async transaction<T>(work: (connection: Connection) => Promise<T>, repeatable = false): Promise<T> {
    return this.#repeated(repeatable, (attempt) =>
      this.#connected(async (client) => {
        // Named, because the default of a database may be another.
        await client.query('BEGIN ISOLATION LEVEL READ COMMITTED')
        const result = await work({
          // One simple query may hold several statements, which a prepared one cannot: the steps of the schema.
          query: async <Row extends object>(text: string, values?: readonly unknown[]) =>
            (await client.query<Row>(values === undefined ? { text } : prepared(text, values))).rows,
        })
        attempt.isUnknown = true
        await client.query('COMMIT')
        return result
      }),
    )
  }

  /** Lets what runs finish. */
  close(): Promise<void> {
    this.#patienceMs = 0
    return this.#pool.end()
  }

  /** Gives a connection back rolled back, or not at all where it is broken. */
  async #connected<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const { guard } = this.#options
    guard?.requireSame()
    const client = await this.#pool.connect()
    // Without a listener the end of a connection between two statements would end the process.
    const ignore = (): void => undefined
    client.on('error', ignore)
    let broken = false
    try {
      if (!this.#ready.has(client)) {
        if (!this.#isSessionMode) await requireSessionMode(client, this.#options.url)
        this.#isSessionMode = true
        await client.query(setUp)
        await guard?.look((text) => client.query(text))
        guard?.requireSame()
        this.#ready.add(client)
      }
      return await work(client)
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
  }

  async #repeated<T>(repeatable: boolean, work: (attempt: Attempt) => Promise<T>): Promise<T> {
    const since = performance.now()
    let left = tries - 1
    for (;;) {
      const attempt: Attempt = { isUnknown: false }
      try {
        return await work(attempt)
      } catch (error) {
        if (again.has(codeOf(error)) && left > 0) {
          left -= 1
          continue
        }
        const mayWait =
          isAway(error) && (repeatable || !attempt.isUnknown) && performance.now() - since < this.#patienceMs
        if (!mayWait) throw told(error, this.#options.unavailable)
        await setTimeout(pauseMs)
      }
    }
  }
}

function prepared(text: string, values: readonly unknown[]): pg.QueryConfig {
  let name = names.get(text)
  if (name === undefined) {
    name = `paddock_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
    names.set(text, name)
  }
  return { name, text, values: values.map(toStored) }
}
const names = new Map<string, string>()

function codeOf(error: unknown): string {
  return error instanceof pg.DatabaseError ? (error.code ?? '') : ''
}

/**
 * True where the server is away or refuses to work for now. Without a code it is the connection, which the driver tells by
 * many errors. Else: connections (08), too few of something (53), an operator or a limit ended it (57), a lock was not to
 * be had (55), a conflict that stayed (40), a standby that is not promoted yet (25006).
 */
function isAway(error: unknown): boolean {
  if (isPaddockError(error)) return false
  return !(error instanceof pg.DatabaseError) || /^(08|53|57|55|40|25P0[34]|25006)/.test(codeOf(error))
}

function isOfTheUrl(error: unknown): boolean {
  return error instanceof URIError || (error instanceof TypeError && 'input' in error)
}

/** As Paddock says it. Whether a statement took place is unknown when the connection went with it. */
export function told(error: unknown, unavailable: ErrorCode): Error {
  if (isPaddockError(error)) return error
  if (isOfTheUrl(error)) {
    // Without its cause, which has the URL with it.
    return new PaddockError('CONFIG_INVALID', 'the URL of the PostgreSQL database cannot be read', {
      fix: 'Write `postgres://user@host:5432/database`, special characters as %XX.',
    })
  }
  const what = error instanceof Error ? error.message : String(error)
  const code = codeOf(error)
  if (isAway(error)) return new PaddockError(unavailable, `PostgreSQL: ${what}`, { cause: error })
  if (code.startsWith('23')) {
    return new PaddockError('STORE_CONFLICT', `PostgreSQL: it contradicts what is stored: ${what}`, { cause: error })
  }
  return new PaddockError('STORE_FAILED', `PostgreSQL refused a statement: ${what} (${code})`, {
    fix: 'See the cause; check that nobody changed the tables of the schema `paddock` and that the role may write them.',
    cause: error,
  })
}
