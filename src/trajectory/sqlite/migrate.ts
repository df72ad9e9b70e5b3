import type { Database } from 'better-sqlite3'
import { PaddockError } from '../../core/index.ts'

/** One forward step of a schema; its version is its place in the list, from 1. */
export type Migration = string

/** The schema version of a database file, 0 for an empty one. */
export function schemaVersion(db: Database): number {
  const known = db.prepare(`SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'`).get()
  if (known === undefined) return 0
  return Number(db.prepare('SELECT max(version) FROM schema_version').pluck().get() ?? 0)
}

/**
 * Brings a database to the newest schema, each step in its own transaction.
 * Throws `STORE_SCHEMA` when the file is newer than this program.
 */
export function migrate(db: Database, migrations: readonly Migration[], now: number): void {
  refuseNewer(db.name, schemaVersion(db), migrations.length)
  db.exec('CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT')
  for (const [index, sql] of migrations.entries()) {
    db.transaction(() => {
      // Looked up inside: two threads of the owner open the catalogue at once.
      if (index < schemaVersion(db)) return
      db.exec(sql)
      db.prepare('INSERT INTO schema_version (version, applied_at) VALUES (?, ?)').run(index + 1, now)
    }).immediate()
  }
}

/** For readers, which may not migrate. Throws `STORE_SCHEMA` unless the file has exactly the schema of this program. */
export function requireSchema(db: Database, migrations: readonly Migration[]): void {
  const found = schemaVersion(db)
  refuseNewer(db.name, found, migrations.length)
  if (found < migrations.length) {
    throw new PaddockError('STORE_SCHEMA', `${db.name} has schema ${found}, this program reads ${migrations.length}`, {
      fix: 'Open the data directory once with `paddock serve`; it brings the schema forward.',
    })
  }
}

function refuseNewer(file: string, found: number, known: number): void {
  if (found > known) {
    throw new PaddockError('STORE_SCHEMA', `${file} has schema ${found}, this program knows ${known}`)
  }
}
