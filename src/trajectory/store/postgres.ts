import { type Id, PaddockError } from '../../core/index.ts'
import { SqlCatalogue, SqlCatalogueReader } from '../catalogue/index.ts'
import type { Catalogue, CatalogueReader, Queue, TrainerBook, TrainerReader } from '../contract/index.ts'
import type { ConnectionGuard, PostgresFound } from '../postgres/index.ts'
import { openPostgresQueue } from '../queue/postgres/index.ts'
import { SqlTrainerBook, SqlTrainerReader } from '../trainer/index.ts'

export interface PostgresCatalogueOptions {
  /** `postgres://user@host:5432/database`; a socket is `postgres://user@/database?host=/folder`. */
  readonly url: string
  /** Connections of the catalogue, and of the queue, at most. Default 8. */
  readonly connections?: number
  /** How long a call waits for a server that is away, such as one that restarts. Milliseconds, default 60,000. */
  readonly patienceMs?: number
  /** The data directory that writes, where several share the database; `name` is for people. Null, the default: nobody asks. */
  readonly home?: { readonly id: Id; readonly name: string } | null
  /** Looks at each new connection. Default: nobody does. */
  readonly guard?: ConnectionGuard
}

/** Catalogue, trainer's book and queue in one PostgreSQL database. */
export interface PostgresCatalogue {
  /** Which database it is. */
  readonly id: Id
  readonly catalogue: Catalogue
  readonly trainer: TrainerBook
  readonly queue: Queue
  readonly close: () => Promise<void>
}

/**
 * Opens a PostgreSQL database and brings its schema (`paddock`) forward. Many processes may do so at once. The queue has
 * connections of its own: a heartbeat waits for no read of a large run. Throws `CATALOGUE_UNAVAILABLE`,
 * `QUEUE_UNAVAILABLE` when the server does not answer, `STORE_SCHEMA` when a newer Paddock wrote the schema, and
 * `CONFIG_INVALID` behind a pooler in transaction mode.
 */
export async function openPostgresCatalogue(options: PostgresCatalogueOptions): Promise<PostgresCatalogue> {
  const { url, connections = 8, patienceMs = 60_000, home = null, guard } = options
  const { database, PostgresSql, id } = await connected(options, true)
  try {
    if (home !== null) {
      const text = `INSERT INTO data_directories (id, name) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET name = excluded.name`
      await database.query(text, [home.id, home.name], true)
    }
    const queue = await openPostgresQueue({ url, connections, patienceMs, guard })
    return {
      id,
      catalogue: new SqlCatalogue(new PostgresSql(database, true), home?.id),
      trainer: new SqlTrainerBook(new PostgresSql(database, false), home?.id),
      queue,
      close: async () => {
        await Promise.all([database.close(), queue.close()])
      },
    }
  } catch (error) {
    await database.close()
    throw error
  }
}

/** Opens it for reading. The schema must be there as this program knows it: `STORE_SCHEMA`. */
export async function openPostgresReader(
  url: string,
  home: Id,
): Promise<{
  readonly id: Id
  readonly catalogue: CatalogueReader
  readonly trainer: TrainerReader
  readonly close: () => Promise<void>
}> {
  const { database, PostgresSql, id } = await connected({ url, connections: 4, patienceMs: 10_000 }, false)
  const sql = new PostgresSql(database, true)
  const catalogue = new SqlCatalogueReader(sql, home)
  return { id, catalogue, trainer: new SqlTrainerReader(sql), close: () => database.close() }
}

async function connected(options: PostgresCatalogueOptions, migrates: boolean) {
  const { url, connections = 8, patienceMs = 60_000, guard } = options
  // Loaded here, so that who has no PostgreSQL does not load its driver.
  const { Database, PostgresSql } = await import('../postgres/index.ts')
  const unavailable = 'CATALOGUE_UNAVAILABLE'
  const database = await Database.open({ url, connections, patienceMs, unavailable, migrates, guard })
  const [identity] = await database.query<{ id: Id }>('SELECT id FROM identity', [], true)
  if (identity !== undefined) return { database, PostgresSql, id: identity.id }
  await database.close()
  throw new PaddockError('STORE_CORRUPT', 'the catalogue in PostgreSQL does not say which it is')
}

/** What a PostgreSQL database is, before anything is made in it; writes nothing. Throws `CATALOGUE_UNAVAILABLE`. */
export async function probePostgresCatalogue(url: string): Promise<PostgresFound> {
  const { probePostgres } = await import('../postgres/index.ts')
  return probePostgres(url)
}
