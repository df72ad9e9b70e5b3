/** What is wrong with a database file, whatever it holds. */
import { closeSync, openSync, readSync } from 'node:fs'
import Database from 'better-sqlite3'
import { type Migration, migrate } from '../sqlite/index.ts'

/** Structure, references, and a schema that is not the one that this program makes. */
export function databaseProblems(db: Database.Database, migrations: readonly Migration[]): string[] {
  const integrity = db.prepare('PRAGMA integrity_check(20)').pluck().all().map(String)
  const orphans = Number(
    db
      .prepare(`SELECT count(*) FROM pragma_foreign_key_check ${besideArchived(db)}`)
      .pluck()
      .get(),
  )
  return [
    ...integrity.filter((line) => line !== 'ok'),
    ...(orphans === 0 ? [] : [`${orphans} rows refer to rows that are not there`]),
    ...(schemaOf(db) === schemaOf(made(migrations)) ? [] : ['its schema was changed']),
    ...(isForLog(db.name) ? [] : ['its head was changed']),
  ]
}

/** What was told of calls after their records were archived refers to them in another table. */
function besideArchived(db: Database.Database): string {
  const known = db.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'archived_calls'`).get()
  if (known === undefined) return ''
  const told = (table: string): string =>
    `("table" = '${table}' AND rowid IN (SELECT t.rowid FROM ${table} t JOIN archived_calls a ON a.n = t.call))`
  return `WHERE NOT (${['deliveries', 'supersessions'].map(told).join(' OR ')})`
}

function made(migrations: readonly Migration[]): Database.Database {
  const db = new Database(':memory:')
  migrate(db, migrations, 0)
  return db
}

function schemaOf(db: Database.Database): string {
  return JSON.stringify(db.prepare('SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name').all())
}

/** Bytes 18 and 19: written and read with a write-ahead log (sqlite.org/fileformat.html, 1.3). */
function isForLog(file: string): boolean {
  const fd = openSync(file, 'r')
  try {
    const head = Buffer.alloc(100)
    readSync(fd, head, 0, head.length, 0)
    return head[18] === 2 && head[19] === 2
  } finally {
    closeSync(fd)
  }
}
