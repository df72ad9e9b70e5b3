import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import { PaddockError } from '../../core/index.ts'
import { type Migration, migrate, requireSchema } from './migrate.ts'

/** `normal`: durable against the death of the process. `full`: also against power loss, one fsync per transaction. */
export type Synchronous = 'normal' | 'full'

/** How a database file is opened by its owner. */
export interface OwnerOptions {
  readonly synchronous: Synchronous
  readonly migrations: readonly Migration[]
  readonly now: number
  /** For a new file: rows of a few kB leave half a page empty on average, so small pages for those. Default 4096. */
  readonly pageBytes?: 1024 | 4096
}

/** Opens a database for writing, makes and migrates it where needed. Throws `STORE_SCHEMA`, `STORE_CORRUPT`. */
export function openForWriting(file: string, options: OwnerOptions): Database.Database {
  return guarded(file, () => {
    const db = new Database(file, { timeout: 5000 })
    db.pragma(`page_size = ${options.pageBytes ?? 4096}`)
    db.pragma('journal_mode = WAL')
    db.pragma(`synchronous = ${options.synchronous === 'full' ? 'FULL' : 'NORMAL'}`)
    db.pragma('foreign_keys = ON')
    db.pragma('temp_store = MEMORY')
    db.pragma('cache_size = -16384')
    migrate(db, options.migrations, options.now)
    return db
  })
}

/** Opens a database that another process may own. Throws `NOT_FOUND`, `STORE_SCHEMA`, `STORE_CORRUPT`. */
export function openForReading(file: string, migrations: readonly Migration[]): Database.Database {
  if (!existsSync(file)) throw new PaddockError('NOT_FOUND', `there is no store file ${file}`)
  return guarded(file, () => {
    const db = new Database(file, { readonly: true, fileMustExist: true, timeout: 5000 })
    requireSchema(db, migrations)
    return db
  })
}

function guarded(file: string, open: () => Database.Database): Database.Database {
  try {
    return open()
  } catch (error) {
    if (error instanceof Database.SqliteError && /^SQLITE_(CORRUPT|NOTADB)/.test(error.code)) {
      throw new PaddockError('STORE_CORRUPT', `${file} is not a readable database`, { cause: error })
    }
    throw error
  }
}
