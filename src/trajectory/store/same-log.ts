/** Log and catalogue of a data directory belong together: the catalogue remembers which log it is beside. */
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { PaddockError } from '../../core/index.ts'
import { catalogueMigrations } from '../catalogue/index.ts'
import { knownIdentity, logMigrations, rememberedLog } from '../recorder/index.ts'
import { asStoreError, type Migration, openForReading, schemaVersion } from '../sqlite/index.ts'

/** The files of a data directory. */
export function storeFiles(directory: string): { readonly log: string; readonly catalogue: string } {
  return { log: join(directory, 'log.sqlite'), catalogue: join(directory, 'catalogue.sqlite') }
}

/**
 * Throws `STORE_CORRUPT` where one of the two is lost, empty or another's: nothing is begun anew beside what is left.
 * `STORE_SCHEMA` where one is newer than this program.
 */
export function requireSameLog(directory: string): void {
  const files = storeFiles(directory)
  const remembered = ask(files.catalogue, (db) => rememberedLog(db)?.id ?? null, catalogueMigrations)
  const log = ask(files.log, (db) => ({ id: knownIdentity(db), used: isUsed(db, 'sessions') }), logMigrations)
  if (remembered !== null) {
    if (log === null) throw damaged(directory, `log.sqlite is ${existsSync(files.log) ? 'empty' : 'gone'}`)
    if (log.id !== remembered) throw damaged(directory, 'log.sqlite is the log of another data directory')
  } else if (log?.used === true) {
    throw damaged(directory, 'catalogue.sqlite is gone or empty, or does not know its log')
  } else if (ask(files.catalogue, (db) => isUsed(db, 'runs'), catalogueMigrations) === true) {
    throw damaged(directory, 'catalogue.sqlite has runs and does not know its log')
  }
}

/** Null: there is no such file, or nothing was ever written to it. */
function ask<Answer>(
  file: string,
  question: (db: Database) => Answer,
  migrations: readonly Migration[],
): Answer | null {
  if (!existsSync(file) || (statSync(file).size === 0 && !existsSync(`${file}-wal`))) return null
  const db = openForReading(file, null)
  try {
    const version = schemaVersion(db)
    if (version === 0) return null
    if (version > migrations.length) {
      throw new PaddockError('STORE_SCHEMA', `${file} has schema ${version}, this program knows ${migrations.length}`)
    }
    return question(db)
  } catch (error) {
    throw asStoreError(error, file)
  } finally {
    db.close()
  }
}

function isUsed(db: Database, table: 'sessions' | 'runs'): boolean {
  return db.prepare(`SELECT 1 FROM ${table} LIMIT 1`).get() !== undefined
}

function damaged(directory: string, what: string): PaddockError {
  return new PaddockError('STORE_CORRUPT', `The store in ${directory} is not whole: ${what}.`, {
    fix: 'Put the file back from a backup, or take over what is left: `paddock salvage`.',
  })
}
