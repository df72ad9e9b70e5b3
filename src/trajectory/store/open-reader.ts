import { join, resolve } from 'node:path'
import { DirectoryBlobReader } from '../blobs/index.ts'
import { catalogueMigrations, SqliteCatalogueReader } from '../catalogue/index.ts'
import type { CatalogueReader, RecorderReader, StoreReader } from '../contract.ts'
import { LogReader, logMigrations } from '../recorder/index.ts'
import { openForReading } from '../sqlite/index.ts'

/**
 * Opens a data directory for reading, at any time, also beside a live owner. Reads run in this thread: this is for
 * programs that read and do nothing else. Throws `NOT_FOUND`, `STORE_SCHEMA`, `STORE_CORRUPT`.
 */
export function openReader(directory: string): Promise<StoreReader> {
  return later(() => {
    const path = resolve(directory)
    const log = openForReading(join(path, 'log.sqlite'), logMigrations)
    const catalogue = openForReading(join(path, 'catalogue.sqlite'), catalogueMigrations)
    const close = (): Promise<void> =>
      later(() => {
        log.close()
        catalogue.close()
      })
    return {
      directory: path,
      recorder: logReads(new LogReader(log)),
      catalogue: catalogueReads(new SqliteCatalogueReader(catalogue)),
      blobs: new DirectoryBlobReader(join(path, 'blobs')),
      close,
      [Symbol.asyncDispose]: close,
    }
  })
}

function logReads(reader: LogReader): RecorderReader {
  return {
    sessions: (...args) => later(() => reader.sessions(...args)),
    session: (...args) => later(() => reader.session(...args)),
    events: (...args) => later(() => reader.events(...args)),
    close: () => Promise.resolve(),
  }
}

function catalogueReads(reader: SqliteCatalogueReader): CatalogueReader {
  return {
    run: (id) => later(() => reader.run(id)),
    runs: (limit) => later(() => reader.runs(limit)),
    task: (digest) => later(() => reader.task(digest)),
    tasks: () => later(() => reader.tasks()),
    group: (id) => later(() => reader.group(id)),
    groups: (runId) => later(() => reader.groups(runId)),
    rollout: (id) => later(() => reader.rollout(id)),
    rollouts: (filter) => later(() => reader.rollouts(filter)),
    fingerprint: (digest) => later(() => reader.fingerprint(digest)),
    tokenTexts: (tokenizer, ids) => later(() => reader.tokenTexts(tokenizer, ids)),
    resolve: (prefix) => later(() => reader.resolve(prefix)),
    close: () => Promise.resolve(),
  }
}

/** A throw becomes a rejection. */
async function later<T>(read: () => T): Promise<T> {
  return read()
}
