import pg from 'pg'
import { isPaddockError, PaddockError } from '../../core/index.ts'
import { migrations, schemaVersion } from './schema.ts'
import { requireSessionMode } from './session-mode.ts'

/** What a PostgreSQL database is, before anything is made in it. */
export interface PostgresFound {
  /** Of the server, as it says it. */
  readonly version: string
  /** 0: Paddock has not been here. */
  readonly schema: number
  /** What this program knows. */
  readonly known: number
}

/** Looks and writes nothing. Throws `CATALOGUE_UNAVAILABLE`, and `CONFIG_INVALID` behind a pooler in transaction mode. */
export async function probePostgres(url: string): Promise<PostgresFound> {
  try {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000, application_name: 'paddock' })
    client.on('error', () => undefined)
    await client.connect()
    try {
      await requireSessionMode(client, url)
      const { rows } = await client.query<{ server_version: string }>('SHOW server_version')
      const schema = await schemaVersion({
        query: async <Row extends object>(text: string) => (await client.query<Row>(text)).rows,
      })
      return { version: rows[0]?.server_version ?? '', schema, known: migrations.length }
    } finally {
      await client.end()
    }
  } catch (cause) {
    if (isPaddockError(cause)) throw cause
    const what = cause instanceof Error ? cause.message : String(cause)
    throw new PaddockError('CATALOGUE_UNAVAILABLE', `PostgreSQL: ${what}`)
  }
}
