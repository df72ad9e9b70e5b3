import { chmodSync, closeSync, existsSync, openSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import Database from 'better-sqlite3'
import { PaddockError } from '../../core/index.ts'
import { asStoreError } from './damage.ts'
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
  /** `trusted`: whoever writes has looked up every row that it names; SQLite does not look again. Default `checked`. */
  readonly references?: 'checked' | 'trusted'
}

/**
 * Bytes of the write-ahead log at which its pages go into the file. A page that many transactions changed goes once: at
 * SQLite's own 1000 pages, which are small here, nearly every page of an index went each time.
 */
const checkpointBytes = 4 * 2 ** 20

/** Opens a database for writing, makes and migrates it where needed. Throws `STORE_SCHEMA`, `STORE_CORRUPT`. */
export function openForWriting(file: string, options: OwnerOptions): Database.Database {
  return guarded(file, () => {
    const db = new Database(file, { timeout: 5000 })
    db.pragma(`page_size = ${options.pageBytes ?? 4096}`)
    db.pragma('journal_mode = WAL')
    const pageBytes = Number(db.pragma('page_size', { simple: true }))
    db.pragma(`wal_autocheckpoint = ${Math.floor(checkpointBytes / pageBytes)}`)
    db.pragma(`synchronous = ${options.synchronous === 'full' ? 'FULL' : 'NORMAL'}`)
    db.pragma(`foreign_keys = ${options.references === 'trusted' ? 'OFF' : 'ON'}`)
    db.pragma('temp_store = MEMORY')
    db.pragma('cache_size = -16384')
    migrate(db, options.migrations, options.now)
    return db
  })
}

/**
 * Opens a database that another process may own. Throws `NOT_FOUND`, `STORE_SCHEMA`, `STORE_CORRUPT`. `migrations` null:
 * whatever its schema is.
 */
export function openForReading(file: string, migrations: readonly Migration[] | null): Database.Database {
  if (!existsSync(file))
    throw new PaddockError('NOT_FOUND', `there is no store in ${dirname(file)}: ${basename(file)} is missing`, {
      fix: 'Give a data directory of Paddock: a folder that holds log.sqlite.',
    })
  return guarded(file, () => {
    const db = new Database(file, { readonly: true, fileMustExist: true, timeout: 5000 })
    try {
      if (migrations !== null) requireSchema(db, migrations)
      return db
    } catch (error) {
      db.close()
      throw error
    }
  })
}

function guarded(file: string, open: () => Database.Database): Database.Database {
  try {
    return open()
  } catch (error) {
    throw asStoreError(error, file)
  }
}

/** Makes a file that only its owner reads; SQLite gives the files beside it the same mode. Not while it is open here. */
export function makePrivate(file: string): void {
  // A file that is there is not opened: closing it would end the locks that this process holds on it (fcntl(2)).
  if (existsSync(file)) chmodSync(file, 0o600)
  else closeSync(openSync(file, 'wx', 0o600))
}
