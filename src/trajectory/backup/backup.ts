import { constants, existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { PaddockError } from '../../core/index.ts'
import { DirectoryBlobReader } from '../blobs/index.ts'
import { catalogueMigrations } from '../catalogue/index.ts'
import { readPlace, logMigrations } from '../recorder/index.ts'
import { asStoreError, makePrivate, openForReading } from '../sqlite/index.ts'
import { requireSameLog, storeFiles } from '../store/index.ts'
import { copyJournals, holdJournals, releaseJournals, type HeldJournal } from './journals.ts'

/** What `paddock backup` wrote. */
export interface BackupReport {
  readonly into: string
  readonly blobs: number
  /** Of blobs and databases. */
  readonly sizeBytes: number
}

/** An owner's transactions end within milliseconds. */
const waitMs = 30_000
/** Pages that are copied at once, so that a large store does not block this thread for long. */
const pagesAtOnce = 4096

interface Moment {
  readonly log: Database.Database
  readonly catalogue: Database.Database
  readonly journals: readonly HeldJournal[]
}

/**
 * Copies a data directory as it was at one moment into a folder that is not there or empty, also while its owner records:
 * everything that was acknowledged before this began is in it. Calls that were in flight are interrupted in the copy. Tokens,
 * the control token and the lock stay behind. Throws `NOT_FOUND`, `USAGE`, `STORE_*`.
 */
export async function backup(directory: string, into: string): Promise<BackupReport> {
  const [from, to] = [resolve(directory), resolve(into)]
  const old = storeFiles(from)
  if (!existsSync(old.log) || !existsSync(old.catalogue)) {
    throw new PaddockError('NOT_FOUND', `there is no whole store in ${from}`, {
      fix: 'Name a data directory with --data; what is left of a damaged one is taken over by `paddock salvage`.',
    })
  }
  if (existsSync(to) && (await readdir(to)).length > 0) {
    throw new PaddockError('USAGE', `${to} is not empty`, { fix: 'Name a folder that is not there yet.' })
  }
  requireSameLog(from)
  // What is half done never has the name of what is whole.
  const unfinished = join(dirname(to), `.${process.pid}.unfinished-backup`)
  await rm(unfinished, { recursive: true, force: true })
  await mkdir(unfinished, { recursive: true, mode: 0o700 })
  try {
    const sizeBytes = await copyDatabases(old, storeFiles(unfinished))
    // A catalogue in PostgreSQL is not in the copy; which it is, is.
    if (existsSync(join(from, 'catalogue.json'))) {
      await copyFile(join(from, 'catalogue.json'), join(unfinished, 'catalogue.json'))
    }
    // Blobs are there before anything names them, and are never changed.
    const blobs = await copyBlobs(join(from, 'blobs'), join(unfinished, 'blobs'))
    await rm(to, { recursive: true, force: true })
    await rename(unfinished, to)
    return { into: to, blobs: blobs.count, sizeBytes: sizeBytes + blobs.sizeBytes }
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true })
    throw asStoreError(error, `The backup of ${from}`)
  }
}

async function copyDatabases(from: ReturnType<typeof storeFiles>, to: ReturnType<typeof storeFiles>): Promise<number> {
  const moment = hold(from)
  try {
    const pages = { progress: () => pagesAtOnce }
    const copied = [await moment.catalogue.backup(to.catalogue, pages), await moment.log.backup(to.log, pages)]
    for (const file of Object.values(to)) makePrivate(file)
    copyJournals(moment.journals, to.log)
    return copied.reduce(
      (sum, { totalPages }, at) => sum + totalPages * pageBytes(at === 0 ? moment.catalogue : moment.log),
      0,
    )
  } finally {
    moment.log.close()
    moment.catalogue.close()
    releaseJournals(moment.journals)
  }
}

/**
 * Takes hold of one moment of log, journal and catalogue. While nothing more can be ingested, the journal is looked at and then the
 * catalogue: it knows the rollouts of all sessions by then, and remembers nothing that the log lacks. Recording goes on meanwhile, into the journal.
 */
function hold(files: ReturnType<typeof storeFiles>): Moment {
  const opened: Database.Database[] = []
  let journals: readonly HeldJournal[] = []
  const still = new Database(files.log, { fileMustExist: true, timeout: waitMs })
  try {
    const log = openForReading(files.log, logMigrations)
    opened.push(log)
    const catalogue = openForReading(files.catalogue, catalogueMigrations)
    opened.push(catalogue)
    still.exec('BEGIN IMMEDIATE')
    pin(log)
    journals = holdJournals(files.log, readPlace(log).generation)
    pin(catalogue)
    still.exec('ROLLBACK')
    return { log, catalogue, journals }
  } catch (error) {
    for (const db of opened) db.close()
    releaseJournals(journals)
    throw error
  } finally {
    still.close()
  }
}

/** Everything that is read from now on is of this moment: a transaction sees what it saw first (sqlite.org/isolation.html). */
function pin(db: Database.Database): void {
  db.exec('BEGIN')
  db.prepare('SELECT count(*) FROM sqlite_master').get()
}

function pageBytes(db: Database.Database): number {
  return Number(db.pragma('page_size', { simple: true }))
}

async function copyBlobs(from: string, to: string): Promise<{ readonly count: number; readonly sizeBytes: number }> {
  let [count, sizeBytes] = [0, 0]
  await mkdir(to, { recursive: true, mode: 0o700 })
  for await (const blob of new DirectoryBlobReader(from).list()) {
    const folder = join(to, blob.digest.slice(0, 2), blob.digest.slice(2, 4))
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const place = join(blob.digest.slice(0, 2), blob.digest.slice(2, 4), blob.digest)
    await copyFile(join(from, place), join(to, place), constants.COPYFILE_FICLONE)
    count += 1
    sizeBytes += blob.sizeBytes
  }
  return { count, sizeBytes }
}
