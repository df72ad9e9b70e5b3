import type { ConnectionGuard } from '../../postgres/index.ts'
import type { PostgresQueue } from './postgres-queue.ts'

export interface PostgresQueueOptions {
  /** `postgres://user@host:5432/database`; a socket is `postgres://user@/database?host=/folder`. */
  readonly url: string
  /** Connections to the server at most. Default 8: more claim no faster on a small server. */
  readonly connections?: number
  /** How long a call waits for a server that is away before it throws. Milliseconds, default 0. */
  readonly patienceMs?: number
  /** Looks at each new connection. Default: nobody does. */
  readonly guard?: ConnectionGuard | undefined
}

/**
 * Opens the queue in a PostgreSQL database and brings its schema (`paddock`) forward. Many processes may do so at once.
 * Throws `QUEUE_UNAVAILABLE` when the server does not answer, and `STORE_SCHEMA` when a newer Paddock wrote the schema.
 */
export async function openPostgresQueue({
  url,
  connections = 8,
  patienceMs = 0,
  guard,
}: PostgresQueueOptions): Promise<PostgresQueue> {
  // Loaded here, so that who has no PostgreSQL does not load its driver.
  const { PostgresQueue: Opened } = await import('./postgres-queue.ts')
  return Opened.open({ url, connections, patienceMs, guard })
}
