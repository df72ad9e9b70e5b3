import { copyFileSync, existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { type Clock, makeFolder, PaddockError, systemClock } from '../../core/index.ts'
import { copyArchive } from '../archive/index.ts'
import { DirectoryBlobs, openBlobReader } from '../blobs/index.ts'
import { catalogueMigrations, SqlCatalogue } from '../catalogue/index.ts'
import { attempt, checkJournal } from '../fsck/index.ts'
import { generationsOf, journalFile } from '../journal/index.ts'
import {
  HeadsBook,
  type JournalRow,
  logIdentity,
  logMigrations,
  readJournalRow,
  rememberedHeads,
  type SessionChain,
  writeJournalRow,
} from '../recorder/index.ts'
import {
  asStoreError,
  makePrivate,
  type Migration,
  openForReading,
  openForWriting,
  Statements,
} from '../sqlite/index.ts'
import { SqliteSql } from '../sql/index.ts'
import { liveOwner, openStore, storeFiles } from '../store/index.ts'
import { type SalvagedCatalogue, salvageCatalogue } from './salvage-catalogue.ts'
import { forgetArchived, lostSessions, type SalvagedLog, salvageLog } from './salvage-log.ts'

/** What `paddock salvage` took over, and what it could not. */
export interface SalvageReport {
  readonly into: string
  readonly sessions: {
    /** Taken over with all of their records. */
    readonly whole: number
    /** Taken over up to their first damaged record, or (`kept` 0) not at all. */
    readonly cut: SalvagedLog['cut']
  }
  readonly rollouts: number
  readonly blobs: number
  /** Rollouts that lost something and now have the taint `store_damage`: exports for RL leave them out. */
  readonly tainted: readonly string[]
  /** What stayed behind, a line each. */
  readonly lost: readonly string[]
}

const taint = 'store_damage'

/**
 * Takes over what is whole of a damaged data directory into a new one, which must be empty or not there; the damaged one
 * is only read. Waiting jobs are not taken over. Throws `USAGE`, `NOT_FOUND`, `STORE_LOCKED`, and what opening the new
 * store throws.
 */
export async function salvage(
  directory: string,
  into: string,
  options: { readonly clock?: Clock } = {},
): Promise<SalvageReport> {
  const [from, to] = [resolve(directory), resolve(into)]
  const [old, made] = [storeFiles(from), storeFiles(to)]
  if (!existsSync(old.log) && !existsSync(old.catalogue))
    throw new PaddockError('NOT_FOUND', `there is no store in ${from}`, {
      fix: 'Give a data directory of Paddock: a folder that holds log.sqlite.',
    })
  if (liveOwner(from) !== null) throw new PaddockError('STORE_LOCKED', `${from} is owned by a running process`)
  await makeFolder(to, 0o700)
  if ((await readdir(to)).length > 0)
    throw new PaddockError('USAGE', `${to} is not empty`, { fix: 'Name a new directory.' })
  const now = (options.clock ?? systemClock).now()
  const lost: string[] = []
  for (const file of Object.values(made)) makePrivate(file)
  const log = create(made.log, logMigrations, now, 1024)
  const catalogue = create(made.catalogue, catalogueMigrations, now)
  let rollouts: number
  let parts: { readonly rows: SalvagedCatalogue; readonly records: SalvagedLog }
  const tainted = new Set<string>()
  try {
    const source = await opened(old.catalogue, lost)
    const remembered = source === null ? [] : (tried(() => rememberedHeads(source), lost) ?? [])
    const rows = copyCatalogue(source, catalogue, lost)
    const copied = copyLog(old.log, made.log, log, remembered, lost)
    const records = { ...copied, ...(await copyArchived({ from, to, log }, copied, lost)) }
    parts = { rows, records }
    if (!records.journalIsWhole) for (const id of unended(catalogue)) tainted.add(id)
    for (const id of [...rows.incomplete, ...records.cut.flatMap(({ rollout }) => rollout ?? [])]) tainted.add(id)
    rollouts = await taintAll(catalogue, tainted)
    remember(log, catalogue, records)
  } finally {
    log.close()
    catalogue.close()
  }
  const blobs = await copyBlobs(from, join(to, 'blobs'), lost)
  // What the journal still holds gets in, and calls in flight get their end.
  await (await openStore(to, options)).close()
  lost.push(...refusals(made.log))
  const { rows, records } = parts
  return {
    into: to,
    sessions: { whole: records.whole, cut: records.cut },
    rollouts,
    blobs,
    tainted: [...tainted],
    lost: [...rows.lost, ...records.lost, ...lost],
  }
}

function create(file: string, migrations: readonly Migration[], now: number, pageBytes?: 1024): Database.Database {
  return openForWriting(file, {
    synchronous: 'normal',
    migrations,
    now,
    references: 'trusted',
    ...(pageBytes === undefined ? {} : { pageBytes }),
  })
}

/** Null: it cannot even be opened. */
async function opened(file: string, lost: string[]): Promise<Database.Database | null> {
  return tried(() => openForReading(file, null), lost)
}

/** Null, and a line, where that throws. */
function tried<T>(act: () => T, lost: string[]): T | null {
  try {
    return act()
  } catch (error) {
    lost.push(asStoreError(error, 'the store').message)
    return null
  }
}

function copyCatalogue(source: Database.Database | null, into: Database.Database, lost: string[]): SalvagedCatalogue {
  try {
    const copied = source === null ? null : tried(() => salvageCatalogue(source, into), lost)
    return copied ?? { lost: [], incomplete: [] }
  } finally {
    source?.close()
  }
}

function copyLog(
  oldFile: string,
  newFile: string,
  into: Database.Database,
  remembered: readonly SessionChain[],
  lost: string[],
): SalvagedLog {
  const source = tried(() => openForReading(oldFile, null), lost)
  const nothing: SalvagedLog = {
    lost: [],
    whole: 0,
    cut: lostSessions(remembered),
    events: { count: 0, head: 0 },
    journalIsWhole: false,
  }
  if (source === null) return nothing
  try {
    const unread: string[] = []
    const found = (where: string, what: string): void => void unread.push(`${where}: ${what}`)
    attempt(() => checkJournal(source, oldFile, found), 'journal', found)
    lost.push(...unread)
    const asked = { remembered, journalIsWhole: unread.length === 0 }
    const copied = tried(() => salvageLog(source, into, asked), lost) ?? nothing
    const journal = tried(() => readJournalRow(source), lost)
    if (journal !== null) copyJournal(oldFile, newFile, into, { ...journal, events: copied.events })
    return copied
  } finally {
    source.close()
  }
}

/** Sessions whose objects cannot be read are lost with them. */
async function copyArchived(
  { from, to, log }: { readonly from: string; readonly to: string; readonly log: Database.Database },
  { whole, cut }: SalvagedLog,
  lost: string[],
): Promise<Pick<SalvagedLog, 'whole' | 'cut'>> {
  const missing: SalvagedLog['cut'][number][] = []
  const unread: number[] = []
  await copyArchive(log, {
    from,
    to,
    missed: ({ n, id, rolloutId }, error) => {
      lost.push(asStoreError(error, `the archive of session ${id}`).message)
      missing.push({ id, rollout: rolloutId, kept: 0 })
      unread.push(n)
    },
  })
  for (const session of unread) forgetArchived(log, session)
  const before = new Set(cut.map(({ id }) => id))
  const fewer = missing.filter(({ id }) => !before.has(id)).length
  const ids = new Set(missing.map(({ id }) => id))
  return { whole: whole - fewer, cut: [...cut.filter(({ id }) => !ids.has(id)), ...missing] }
}

function copyJournal(oldFile: string, newFile: string, into: Database.Database, row: JournalRow): void {
  for (const generation of generationsOf(oldFile)) {
    makePrivate(journalFile(newFile, generation))
    copyFileSync(journalFile(oldFile, generation), journalFile(newFile, generation))
  }
  writeJournalRow(new Statements(into), row)
}

/** Rollouts that went on: of their sessions the journal may have known alone. */
function unended(db: Database.Database): readonly string[] {
  const rows = new Statements(db).all<{ id: string }>(
    'SELECT id FROM rollouts WHERE id NOT IN (SELECT rollout FROM rollout_ends)',
  )
  return rows.map(({ id }) => id)
}

async function taintAll(db: Database.Database, tainted: Set<string>): Promise<number> {
  const catalogue = new SqlCatalogue(new SqliteSql(db))
  const known = new Set(new Statements(db).all<{ id: string }>('SELECT id FROM rollouts').map(({ id }) => id))
  for (const id of tainted) {
    if (known.has(id)) await catalogue.taint(id, taint)
    else tainted.delete(id)
  }
  return known.size
}

/** Makes the new catalogue know the new log. */
function remember(log: Database.Database, catalogue: Database.Database, { events }: SalvagedLog): void {
  const book = new HeadsBook(log, catalogue)
  book.begin(logIdentity(log))
  const { place } = readJournalRow(log)
  book.tellAll(place, events, true)
}

async function copyBlobs(from: string, to: string, lost: string[]): Promise<number> {
  const source = openBlobReader(from)
  const target = new DirectoryBlobs(to)
  let copied = 0
  for await (const { digest } of source.list()) {
    try {
      await target.put(await source.get(digest))
      copied += 1
    } catch (error) {
      lost.push(asStoreError(error, `blob ${digest}`).message)
    }
  }
  return copied
}

/** What of the journal did not fit: said once, and not again by every check of the new store. */
function refusals(file: string): readonly string[] {
  const db = new Database(file)
  try {
    const told = new Statements(db).all<{ head: string; why: string }>('SELECT head, why FROM refusals')
    db.exec('DELETE FROM refusals')
    return told.map(({ head, why }) => `journal: ${why}: ${head.slice(0, 200)}`)
  } finally {
    db.close()
  }
}
