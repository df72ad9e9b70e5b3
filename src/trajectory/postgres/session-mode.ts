import pg from 'pg'
import { PaddockError } from '../../core/index.ts'

/** A pooler that others use too may give a connection the same process again by chance. */
const looks = 4
const answerTimeoutMs = 10_000

/**
 * Throws where a pooler gives the statements of one connection to any server process: what Paddock sets for a connection would
 * hold for others, and not for Paddock. Asks only, and only in plain statements, as a pooler may repeat prepared ones elsewhere.
 */
export async function requireSessionMode(client: pg.ClientBase, url: string): Promise<void> {
  const process = await processOf(client)
  // The server names its process to each connection. A pooler names another number.
  if ('processID' in client && client.processID === process) return
  const other = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: answerTimeoutMs,
    // A pooler that has no more connections lets it wait for minutes.
    query_timeout: answerTimeoutMs,
    application_name: 'paddock',
  })
  other.on('error', () => undefined)
  try {
    await other.connect()
    const its = await processOf(other)
    // In session mode each keeps its own. Else the next statement gets what came back last, which is the other's, or what
    // came back first, which differs from the one before if there are two.
    let isKept = its !== process
    for (let look = 0; isKept && look < looks; look += 1) {
      isKept = (await processOf(other)) === its && (await processOf(client)) === process
    }
    if (isKept) return
  } finally {
    await other.end()
  }
  throw new PaddockError(
    'CONFIG_INVALID',
    'PostgreSQL is behind a pooler in transaction mode (or statement mode): a connection does not keep its server process',
    { fix: 'Connect to the server directly, or set `pool_mode = session` for this database in the pooler.' },
  )
}

async function processOf(client: pg.ClientBase): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  return rows[0]?.pid
}
