import { resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type LogReads, openArchiveReader, withArchive } from '../archive/index.ts'
import { openBlobReader } from '../blobs/index.ts'
import { catalogueMigrations, SqlCatalogueReader } from '../catalogue/index.ts'
import type { CatalogueReader, StoreReader, TrainerReader } from '../contract/index.ts'
import { isBefore, writtenTo } from '../journal/index.ts'
import { archivedEvents, LogReader, logMigrations, readArchived, readPlace } from '../recorder/index.ts'
import { SqliteSql } from '../sql/index.ts'
import { asStoreError, openForReading } from '../sqlite/index.ts'
import { SqlTrainerReader } from '../trainer/index.ts'
import { liveOwner } from './lock.ts'
import { located } from './located.ts'
import { openPostgresReader } from './postgres.ts'
import { requireSameCatalogue } from './same-catalogue.ts'
import { requireSameLog, storeFiles } from './same-log.ts'
import { homeOf } from './shared.ts'

/** A live owner takes its journal in within milliseconds; one that is far behind is not waited for. */
const waitMs = 1000

/**
 * Opens a data directory for reading, at any time, also beside a live owner: what was durable by then is seen, where the
 * owner is less than a second behind its journal. Reads run in this thread: this is for
 * programs that read and do nothing else. Throws `NOT_FOUND`, `STORE_SCHEMA`, `STORE_CORRUPT`; with `catalogue`, the URL of the
 * PostgreSQL database that has it, also `CATALOGUE_OTHER` and `CATALOGUE_UNAVAILABLE`.
 */
export async function openReader(
  directory: string,
  { catalogue: url = null }: { readonly catalogue?: string | null } = {},
): Promise<StoreReader> {
  const path = resolve(directory)
  const files = storeFiles(path)
  requireSameLog(path)
  const log = openForReading(files.log, logMigrations)
  try {
    if (liveOwner(path) !== null) await caughtUp(log)
    const opened = url === null ? ownCatalogue(path) : await sharedCatalogue(path, url)
    const close = (): Promise<void> =>
      later(async () => {
        log.close()
        await opened.close()
      })
    const reads = withArchive(logReads(new LogReader(log)), openArchiveReader(path))
    return {
      directory: path,
      recorder: url === null ? reads : located(reads, opened.catalogue, path),
      catalogue: opened.catalogue,
      trainer: opened.trainer,
      blobs: openBlobReader(path),
      close,
      [Symbol.asyncDispose]: close,
    }
  } catch (error) {
    log.close()
    throw error
  }
}

interface OpenedCatalogue {
  readonly catalogue: CatalogueReader
  readonly trainer: TrainerReader
  readonly close: () => Promise<void>
}

/** The catalogue beside the log. */
function ownCatalogue(directory: string): OpenedCatalogue {
  requireSameCatalogue(directory, null)
  const db = openForReading(storeFiles(directory).catalogue, catalogueMigrations)
  const sql = new SqliteSql(db)
  return {
    catalogue: catalogueReads(new SqlCatalogueReader(sql)),
    trainer: trainerReads(new SqlTrainerReader(sql)),
    close: async () => void db.close(),
  }
}

async function sharedCatalogue(directory: string, url: string): Promise<OpenedCatalogue> {
  const opened = await openPostgresReader(url, homeOf(directory))
  try {
    requireSameCatalogue(directory, opened.id)
    return opened
  } catch (error) {
    await opened.close()
    throw error
  }
}

/** Resolves when the database has what its owner had written, or when that takes too long. */
async function caughtUp(log: ReturnType<typeof openForReading>): Promise<void> {
  const wanted = writtenTo(log.name)
  if (wanted === null) return
  const until = performance.now() + waitMs
  while (isBefore(readPlace(log), wanted) && performance.now() < until) await setTimeout(5)
}

function logReads(reader: LogReader): LogReads {
  return {
    sessions: (...args) => later(() => reader.sessions(...args)),
    sessionKeys: (...args) => later(() => reader.sessionKeys(...args)),
    sessionOfCall: (...args) => later(() => reader.sessionOfCall(...args)),
    find: (...args) => later(() => reader.find(...args)),
    unpack: (...args) => later(() => readArchived(...args)),
    unpackEvents: (...args) => later(() => archivedEvents(...args)),
    events: (...args) => later(() => reader.events(...args)),
    mark: () => later(() => reader.mark()),
    close: () => Promise.resolve(),
  }
}

function catalogueReads(reader: CatalogueReader): CatalogueReader {
  return {
    run: (id) => later(() => reader.run(id)),
    runs: (limit) => later(() => reader.runs(limit)),
    elsewhere: (runId) => later(() => reader.elsewhere(runId)),
    unfinishedRuns: (of) => later(() => reader.unfinishedRuns(of)),
    task: (digest) => later(() => reader.task(digest)),
    tasks: () => later(() => reader.tasks()),
    group: (id) => later(() => reader.group(id)),
    groups: (runId) => later(() => reader.groups(runId)),
    rollout: (id) => later(() => reader.rollout(id)),
    rollouts: (filter) => later(() => reader.rollouts(filter)),
    countRollouts: (o) => later(() => reader.countRollouts(o)),
    mark: () => later(() => reader.mark()),
    touchedSince: (mark, o) => later(() => reader.touchedSince(mark, o)),
    rounds: (groupId) => later(() => reader.rounds(groupId)),
    settledRounds: (runId, o) => later(() => reader.settledRounds(runId, o)),
    memory: (query) => later(() => reader.memory(query)),
    runEvents: (runId, o) => later(() => reader.runEvents(runId, o)),
    lastRunEvent: (runId) => later(() => reader.lastRunEvent(runId)),
    fingerprint: (digest) => later(() => reader.fingerprint(digest)),
    verification: (key) => later(() => reader.verification(key)),
    tokenTexts: (tokenizer, ids) => later(() => reader.tokenTexts(tokenizer, ids)),
    archived: (of) => later(() => reader.archived(of)),
    namedObjects: (folder, objects) => later(() => reader.namedObjects(folder, objects)),
    resolve: (prefix) => later(() => reader.resolve(prefix)),
    close: () => Promise.resolve(),
  }
}

function trainerReads(reader: TrainerReader): TrainerReader {
  return {
    metrics: (...args) => later(() => reader.metrics(...args)),
    versions: (...args) => later(() => reader.versions(...args)),
    dispositions: (...args) => later(() => reader.dispositions(...args)),
    handedRows: (...args) => later(() => reader.handedRows(...args)),
    ordinals: (...args) => later(() => reader.ordinals(...args)),
    news: (...args) => later(() => reader.news(...args)),
    rowsOfClaim: (...args) => later(() => reader.rowsOfClaim(...args)),
    handedLabels: (...args) => later(() => reader.handedLabels(...args)),
  }
}

/** A throw becomes a rejection, with a name of the store. */
async function later<T>(read: () => T | Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw asStoreError(error, 'the store')
  }
}
