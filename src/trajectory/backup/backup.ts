import { existsSync, statSync } from 'node:fs'
import { readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { type Id, makeFolder, PaddockError } from '../../core/index.ts'
import { copyArchive } from '../archive/index.ts'
import { catalogueMigrations } from '../catalogue/index.ts'
import { readPlace, logMigrations } from '../recorder/index.ts'
import { asStoreError, makePrivate, openForReading, openForWriting } from '../sqlite/index.ts'
import type { CatalogueMoment } from '../postgres/index.ts'
import { homeOf, requireSameCatalogue, requireSameLog, storeFiles } from '../store/index.ts'
import { copyJournals, holdJournals, releaseJournals, type HeldJournal } from './journals.ts'
import { copyBlobs } from './copy-blobs.ts'
import { copyFromPostgres } from './shared-rows.ts'

/** What `paddock backup` wrote. */
export interface BackupReport {
  readonly into: string
  readonly blobs: number
  /** Of blobs, databases, and objects of archived sessions. */
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
 * the control token and the lock stay behind. With `catalogue`, the URL of the PostgreSQL database that has its catalogue, the rows of
 * its runs at that moment are in the copy, whose catalogue is its own. Throws `NOT_FOUND`, `USAGE`, `STORE_*`, `CATALOGUE_*`, `ARCHIVE_*`.
 */
export async function backup(
  directory: string,
  into: string,
  { catalogue = null }: { readonly catalogue?: string | null } = {},
): Promise<BackupReport> {
  const [from, to] = [resolve(directory), resolve(into)]
  const old = storeFiles(from)
  if (!existsSync(old.log) || !existsSync(old.catalogue)) {
    throw new PaddockError('NOT_FOUND', `there is no whole store in ${from}`, {
      fix: 'Give a data directory or a backup that is whole; `paddock salvage` recovers what is left of a damaged one.',
    })
  }
  await requireEmpty(to)
  requireSameLog(from)
  // What is half done never has the name of what is whole.
  const unfinished = join(dirname(to), `.${basename(to)}.${process.pid}.unfinished-backup`)
  await rm(unfinished, { recursive: true, force: true })
  await makeFolder(unfinished, 0o700)
  try {
    const sizeBytes = await copyDatabases(from, catalogue, storeFiles(unfinished))
    // Blobs are there before anything names them, and are never changed.
    const blobs = await copyBlobs(from, unfinished)
    const archived = await copyArchived(from, unfinished)
    await rm(to, { recursive: true, force: true })
    await rename(unfinished, to)
    return { into: to, blobs: blobs.count, sizeBytes: sizeBytes + archived + blobs.sizeBytes }
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true })
    throw asStoreError(error, `The backup of ${from}`)
  }
}

async function copyArchived(from: string, to: string): Promise<number> {
  const log = openForReading(storeFiles(to).log, logMigrations)
  const missed = (_: unknown, error: unknown): never => {
    throw error
  }
  try {
    return await copyArchive(log, { from, to, missed })
  } finally {
    log.close()
  }
}

/** Throws `USAGE`. */
export async function requireEmpty(folder: string): Promise<void> {
  if (!existsSync(folder) || (await readdir(folder)).length === 0) return
  throw new PaddockError('USAGE', `${folder} is not empty`, { fix: 'Name a folder that is not there yet.' })
}

async function copyDatabases(from: string, catalogue: string | null, to: ReturnType<typeof storeFiles>) {
  const shared = await openShared(from, catalogue)
  let moment: Moment | null = null
  try {
    moment = hold(storeFiles(from))
    await shared?.pin()
    const pages = { progress: () => pagesAtOnce }
    await moment.catalogue.backup(to.catalogue, pages)
    await moment.log.backup(to.log, pages)
    for (const file of Object.values(to)) makePrivate(file)
    copyJournals(moment.journals, to.log)
    if (shared !== null) await copyRows(shared, homeOf(from), to.catalogue)
    return Object.values(to).reduce((sum, file) => sum + statSync(file).size, 0)
  } finally {
    moment?.log.close()
    moment?.catalogue.close()
    releaseJournals(moment?.journals ?? [])
    await shared?.close()
  }
}

async function openShared(directory: string, url: string | null): Promise<CatalogueMoment | null> {
  if (url === null) {
    requireSameCatalogue(directory, null)
    return null
  }
  const { CatalogueMoment } = await import('../postgres/index.ts')
  const moment = await CatalogueMoment.open(url)
  try {
    requireSameCatalogue(directory, moment.id)
    return moment
  } catch (error) {
    await moment.close()
    throw error
  }
}

async function copyRows(moment: CatalogueMoment, home: Id, file: string): Promise<void> {
  const db = openForWriting(file, { synchronous: 'full', migrations: catalogueMigrations, now: 0 })
  try {
    await copyFromPostgres(moment, home, db)
  } finally {
    db.close()
  }
}

/**
 * Takes hold of one moment of log, journal and catalogue. While nothing more can be ingested, the journal is looked at and then the
 * catalogue: it knows the rollouts of all sessions by then, and remembers nothing that the log lacks. Nothing is written to it in between, so that
 * an ended rollout has all its calls in the journal. Recording goes on meanwhile, into the journal.
 */
function hold(files: ReturnType<typeof storeFiles>): Moment {
  const opened: Database.Database[] = []
  let journals: readonly HeldJournal[] = []
  const still = new Database(files.log, { fileMustExist: true, timeout: waitMs })
  const stillKnown = new Database(files.catalogue, { fileMustExist: true, timeout: waitMs })
  try {
    const log = openForReading(files.log, logMigrations)
    opened.push(log)
    const catalogue = openForReading(files.catalogue, catalogueMigrations)
    opened.push(catalogue)
    still.exec('BEGIN IMMEDIATE')
    pin(log)
    stillKnown.exec('BEGIN IMMEDIATE')
    journals = holdJournals(files.log, readPlace(log).generation)
    pin(catalogue)
    stillKnown.exec('ROLLBACK')
    still.exec('ROLLBACK')
    return { log, catalogue, journals }
  } catch (error) {
    for (const db of opened) db.close()
    releaseJournals(journals)
    throw error
  } finally {
    stillKnown.close()
    still.close()
  }
}

/** Everything that is read from now on is of this moment: a transaction sees what it saw first (sqlite.org/isolation.html). */
function pin(db: Database.Database): void {
  db.exec('BEGIN')
  db.prepare('SELECT count(*) FROM sqlite_master').get()
}
