import type { SqlData } from '../data.ts'
import type { SqlEngine, SqlEngineName } from './contract.ts'
import { duckdbEngine } from './duckdb.ts'
import { postgresEngine } from './postgres.ts'
import { sqliteEngine } from './sqlite.ts'

const engines: Readonly<Record<SqlEngineName, SqlEngine>> = {
  sqlite: sqliteEngine,
  duckdb: duckdbEngine,
  postgres: postgresEngine,
}

/** The engine of a task's database. A database that names none is SQLite's. */
export function engineOf({ engine }: Pick<SqlData['database'], 'engine'>): SqlEngine {
  return engines[engine ?? 'sqlite']
}

export type { SqlEngine, SqlEngineName } from './contract.ts'
