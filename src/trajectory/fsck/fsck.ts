import { resolve } from 'node:path'
import type { Database } from 'better-sqlite3'
import { type Id, isPaddockError, PaddockError } from '../../core/index.ts'
import { openBlobReader } from '../blobs/index.ts'
import { catalogueMigrations } from '../catalogue/index.ts'
import type { StoreReader } from '../contract/index.ts'
import { archivedIn, logMigrations, rememberedHeads, rememberedLog } from '../recorder/index.ts'
import { asStoreError, type Migration, openForReading } from '../sqlite/index.ts'
import { liveOwner, openReader, requireSameLog, storeFiles } from '../store/index.ts'
import { checkCatalogueRows } from './catalogue-checks.ts'
import { databaseProblems } from './files.ts'
import { attempt, checkJournal, checkRecords, type Remembered } from './log-checks.ts'
import type { Counts, Found, FsckReport } from './report.ts'
import { checkSession } from './session-checks.ts'

/**
 * Checks a data directory and never writes; `catalogue` is the URL of the PostgreSQL database that has its
 * catalogue, of which the runs of this directory are checked. That log and catalogue belong together; structure, schema and references of
 * the databases; the digest of every record and row, and that none is missing; what the journal still holds; each session's
 * tree, lengths and body digests; sessions of rollouts, verdict artifacts, blob digests. Works beside a live owner.
 * Throws `NOT_FOUND` and `STORE_SCHEMA`; everything else is a problem in the report.
 */
export async function fsck(directory: string, o: { readonly catalogue?: string | null } = {}): Promise<FsckReport> {
  const path = resolve(directory)
  const files = storeFiles(path)
  const problems: { where: string; what: string }[] = []
  const counts = { sessions: 0, calls: 0, unfinished: 0, segments: 0, tokens: 0, rollouts: 0, blobs: 0 }
  const found = (where: string, what: string): void => void problems.push({ where, what })
  const live = liveOwner(path) !== null
  const together = belongTogether(path, found)
  let remembered: Remembered = { log: null, sessions: [] }
  const known = opened(files.catalogue, catalogueMigrations, found, (db) => {
    attempt(() => (remembered = { log: rememberedLog(db), sessions: rememberedHeads(db) }), 'catalogue.sqlite', found)
    attempt(() => checkCatalogueRows(db, found), 'catalogue.sqlite', found)
  })
  const recorded = opened(files.log, logMigrations, found, (db) => {
    for (const what of refusals(db)) found('log.sqlite', what)
    attempt(() => checkRecords(db, remembered, found), 'log.sqlite', found)
    if (!live) attempt(() => checkJournal(db, files.log, found), 'journal', found)
  })
  if (!known && !recorded)
    throw new PaddockError('NOT_FOUND', `there is no store in ${path}`, {
      fix: 'Give a data directory of Paddock: a folder that holds log.sqlite.',
    })
  if (together && known && recorded) await checkContents(path, o, counts, found)
  await checkBlobs(path, counts, found)
  return { problems, counts }
}

async function checkBlobs(path: string, counts: Counts, found: Found): Promise<void> {
  try {
    const blobs = openBlobReader(path)
    for await (const { digest } of blobs.list()) {
      counts.blobs += 1
      await blobs.get(digest).catch((error: unknown) => found(`blob ${digest}`, messageOf(error)))
    }
  } catch (error) {
    found('blobs', messageOf(error))
  }
}

/** Throws `STORE_SCHEMA`. */
function belongTogether(path: string, found: Found): boolean {
  try {
    requireSameLog(path)
    return true
  } catch (error) {
    if (isPaddockError(error) && error.code === 'STORE_SCHEMA') throw error
    found('store', messageOf(error))
    return false
  }
}

/** Checks a database file. False where there is none. */
function opened(file: string, migrations: readonly Migration[], found: Found, check: (db: Database) => void): boolean {
  const name = file.slice(file.lastIndexOf('/') + 1)
  let db: Database
  try {
    db = openForReading(file, migrations)
  } catch (error) {
    if (isPaddockError(error) && error.code === 'NOT_FOUND') return false
    // One that is newer was refused before: what is older than the first schema is empty.
    found(name, messageOf(error))
    return true
  }
  try {
    attempt(
      () => {
        for (const what of databaseProblems(db, migrations)) found(name, what)
        check(db)
      },
      name,
      found,
    )
  } finally {
    db.close()
  }
  return true
}

/** Facts that were acknowledged and that the log then refused, or could not read: nobody else reads them. */
function refusals(db: Database): string[] {
  return db
    .prepare<[], { head: string; why: string }>('SELECT head, why FROM refusals LIMIT 20')
    .all()
    .map(({ head, why }) => `an entry was refused (${why}): ${head.slice(0, 200)}`)
}

async function checkContents(
  path: string,
  o: { readonly catalogue?: string | null },
  counts: Counts,
  found: Found,
): Promise<void> {
  try {
    await using reader = await openReader(path, o)
    await checkSessions(reader, counts, found)
    await checkNames(path, reader, found)
    await checkRollouts(reader, counts, found)
  } catch (error) {
    found('store', messageOf(error))
  }
}

async function checkSessions(reader: StoreReader, counts: Counts, found: Found): Promise<void> {
  for (const session of await reader.recorder.sessions()) {
    counts.sessions += 1
    try {
      const log = await reader.recorder.session(session.id)
      counts.calls += log.calls.length
      counts.unfinished += log.calls.filter(({ commit }) => commit === null).length
      counts.segments += log.segments.length
      for (const segment of log.segments) counts.tokens += segment.tokens.length
      for (const what of checkSession(log)) found(`session ${session.id}`, what)
      if (session.rolloutId !== null) {
        await reader.catalogue
          .rollout(session.rolloutId)
          .catch((error: unknown) => found(`session ${session.id}`, `its rollout: ${messageOf(error)}`))
      }
    } catch (error) {
      found(`session ${session.id}`, messageOf(error))
    }
  }
}

/** The catalogue names every object that the log goes by. Whether they are there was seen by reading their sessions. */
async function checkNames(path: string, { catalogue }: StoreReader, found: Found): Promise<void> {
  const db = openForReading(storeFiles(path).log, logMigrations)
  try {
    for (const { id, object } of archivedIn(db)) {
      const named = await catalogue.archived({ sessionId: id })
      if (!named.some((one) => one.object === object)) {
        found(`session ${id}`, `the catalogue does not name the object ${object}, which has its records`)
      }
    }
  } finally {
    db.close()
  }
}

async function checkRollouts(reader: StoreReader, counts: Counts, found: Found): Promise<void> {
  for (const { id } of await reader.catalogue.runs()) {
    // Its segments and artifacts are where it was recorded.
    if ((await reader.catalogue.elsewhere(id)) !== null) continue
    try {
      await checkRun(reader, id, counts, found)
    } catch (error) {
      found(`run ${id}`, messageOf(error))
    }
  }
}

async function checkRun(reader: StoreReader, runId: Id, counts: Counts, found: Found): Promise<void> {
  for (const group of await reader.catalogue.groups(runId)) await reader.catalogue.rounds(group.id)
  for (const rollout of await reader.catalogue.rollouts({ runId })) {
    counts.rollouts += 1
    const known = new Set<string>()
    const named = [...(rollout.work?.artifacts ?? []), ...rollout.verdicts.flatMap(({ artifacts }) => artifacts)]
    for (const [sha256, path] of new Map(named.map((artifact) => [artifact.sha256, artifact.path]))) {
      if (!(await reader.blobs.has(sha256))) found(`rollout ${rollout.id}`, `artifact ${path} (${sha256}) is not there`)
    }
    for (const verdict of rollout.verdicts) {
      if (verdict.supersedes !== null && !known.has(verdict.supersedes)) {
        found(`rollout ${rollout.id}`, `verdict ${verdict.id} supersedes ${verdict.supersedes}, which is not there`)
      }
      known.add(verdict.id)
    }
  }
}

function messageOf(error: unknown): string {
  const { code, message } = asStoreError(error, 'the store')
  return `${code}: ${message}`
}
