import pg from 'pg'
import type { Id } from '../../core/index.ts'
import type { Connection } from './connection.ts'
import { told, types } from './database.ts'
import { requireSchema } from './schema.ts'
import { requireSessionMode } from './session-mode.ts'

const rowsAtOnce = 1000
/** A rollout that ends takes milliseconds. */
const lockTimeoutMs = 30_000

/**
 * A catalogue as it is at one moment, however long it is read. From {@link CatalogueMoment.open} to {@link CatalogueMoment.pin} no
 * rollout ends: what is looked at in between has all that an ended rollout of this moment has. Throws `CATALOGUE_UNAVAILABLE`,
 * `STORE_SCHEMA`, `STORE_FAILED`, `CONFIG_INVALID` behind a pooler in transaction mode.
 */
export class CatalogueMoment {
  readonly #locking: pg.Client
  readonly #reading: pg.Client
  #id: Id = ''

  static async open(url: string): Promise<CatalogueMoment> {
    const moment = new CatalogueMoment(url)
    try {
      await moment.#locking.connect()
      await requireSessionMode(moment.#locking, url)
      await moment.#reading.connect()
      await Promise.all([moment.#begin(moment.#locking), moment.#begin(moment.#reading)])
      await requireSchema(moment.connection)
      const [identity] = await moment.connection.query<{ id: Id }>('SELECT id FROM identity')
      moment.#id = identity?.id ?? ''
      await moment.#locking.query('BEGIN')
      await moment.#locking.query('LOCK TABLE rollout_ends IN SHARE MODE')
      return moment
    } catch (error) {
      await moment.close()
      throw told(error, 'CATALOGUE_UNAVAILABLE')
    }
  }

  private constructor(url: string) {
    const client = (): pg.Client =>
      new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000, application_name: 'paddock', types })
    this.#locking = client()
    this.#reading = client()
    for (const one of [this.#locking, this.#reading]) one.on('error', () => undefined)
  }

  /** Which database it is. */
  get id(): Id {
    return this.#id
  }

  /** What is read from now on is of this moment; rollouts may end again. */
  async pin(): Promise<void> {
    await this.connection.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    await this.connection.query('SELECT 1')
    await this.#locking.query('ROLLBACK').catch((error: unknown) => {
      throw told(error, 'CATALOGUE_UNAVAILABLE')
    })
  }

  readonly connection: Connection = {
    query: async <Row extends object>(text: string, values?: readonly unknown[]) => {
      try {
        return (await this.#reading.query<Row>({ text, ...(values === undefined ? {} : { values: [...values] }) })).rows
      } catch (error) {
        throw told(error, 'CATALOGUE_UNAVAILABLE')
      }
    },
  }

  /** The rows of a selection, some at a time. After {@link pin}. */
  async *rows<Row extends object>(text: string, values: readonly unknown[]): AsyncIterable<readonly Row[]> {
    await this.connection.query(`DECLARE rows NO SCROLL CURSOR FOR ${text}`, values)
    for (;;) {
      const some = await this.connection.query<Row>(`FETCH ${rowsAtOnce} FROM rows`)
      if (some.length === 0) break
      yield some
    }
    await this.connection.query('CLOSE rows')
  }

  async close(): Promise<void> {
    await Promise.allSettled([this.#locking.end(), this.#reading.end()])
  }

  async #begin(client: pg.Client): Promise<void> {
    await client.query(
      `SET search_path TO paddock; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0;
       SET lock_timeout = ${lockTimeoutMs}`,
    )
  }
}
