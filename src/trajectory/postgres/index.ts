export type { Connection } from './connection.ts'
export { Database } from './database.ts'
export { type PostgresFound, probePostgres } from './probe.ts'
export { PostgresSql, PostgresTransaction } from './postgres-sql.ts'
