import { chmod, mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type Clock, makeFolder, type PaddockError, systemClock } from '../../core/index.ts'
import {
  type ArchiveOptions,
  type Archiver,
  openArchiveReader,
  openArchiver,
  settleArchive,
  withArchive,
} from '../archive/index.ts'
import { type BlobsOptions, openBlobs, type OpenedBlobs } from '../blobs/index.ts'
import { catalogueMigrations } from '../catalogue/index.ts'
import type { Blobs, Catalogue, Queue, RecorderReader, Store, TrainerBook } from '../contract/index.ts'
import { openRecorder, type OpenedRecorder } from '../recorder/index.ts'
import {
  asStoreError,
  makePrivate,
  openForWriting,
  StoreThread,
  type Synchronous,
  type ThreadLimits,
} from '../sqlite/index.ts'
import { Changes, telling, tellingBook } from './changes.ts'
import { located } from './located.ts'
import { releaseLock, takeLock } from './lock.ts'
import { requireLocal } from './network-file-system.ts'
import { remoteArchivingLog, remoteCatalogue, remoteLogReads, remoteQueue, remoteTrainerBook } from './remote.ts'
import { requireSameCatalogue } from './same-catalogue.ts'
import { requireSameLog, storeFiles } from './same-log.ts'
import { homeOf, openShared, type SharedCatalogue } from './shared.ts'
import type { SideData } from './side-worker.ts'

/** How a data directory is opened by its owner. */
export interface StoreOptions {
  /** Default `normal`: safe against the death of the process; `full`: also against power loss. */
  readonly synchronous?: Synchronous
  readonly clock?: Clock
  /** Bounds of what may be under way to the writer thread. */
  readonly limits?: Partial<ThreadLimits>
  /** URL of a PostgreSQL database that has catalogue, queue and trainer's book; null, the default: they are beside the log. */
  readonly catalogue?: string | null
  /** Where blobs go; by default where they are already, or in the directory. */
  readonly blobs?: BlobsOptions
  /** Where finished sessions go; by default where they are already, or nowhere. */
  readonly archive?: ArchiveOptions
  /** Told that the PostgreSQL database went on from a moment in the past: from now on every call throws this error. */
  readonly onRewound?: (error: PaddockError) => void
  /** The command that holds the directory without offering a control API; others are refused with its name instead of waiting. */
  readonly work?: string
}

/** A store with what its owner may watch. */
export interface OwnedStore extends Store {
  /** Requests and bytes on their way to the log. */
  readonly load: OpenedRecorder['load']
  /** How blobs stand that go to an object store; null: they stay in the directory. */
  readonly blobsState: OpenedBlobs['state']
  /** What moves finished sessions into their archive; null: they stay in the log. */
  readonly archiver: Archiver | null
  /** How often the PostgreSQL database of the catalogue went on from a moment in the past. */
  readonly rewound: number
}

/**
 * Opens a data directory as its only owner: makes it where needed, takes the lock, brings schemas forward and marks
 * calls that were in flight as `interrupted`. Nobody but the user of this process can read it. A log or catalogue that
 * is lost, empty or another's is not begun anew. Throws `STORE_LOCKED`, `STORE_FILESYSTEM`, `STORE_SCHEMA`,
 * `STORE_CORRUPT`, `STORE_FAILED`, `CATALOGUE_OTHER`, `CATALOGUE_REWOUND`, `CATALOGUE_UNAVAILABLE`, `BLOBS_OTHER`,
 * `BLOBS_REFUSED`, `ARCHIVE_OTHER`, `ARCHIVE_REFUSED`.
 */
export async function openStore(directory: string, options: StoreOptions = {}): Promise<OwnedStore> {
  const path = resolve(directory)
  const { synchronous = 'normal', clock = systemClock, limits = {}, catalogue = null } = options
  try {
    await makeFolder(path, 0o700)
    requireLocal(path)
    takeLock(path, clock.now(), options.work ?? null)
    try {
      await makeOwn(path)
      requireSameLog(path)
      if (catalogue === null) requireSameCatalogue(path, null)
      for (const file of Object.values(storeFiles(path))) makePrivate(file)
      const { blobs, archive = { store: null }, onRewound = () => undefined } = options
      await settleArchive(path, archive)
      return await openOwned(path, {
        synchronous,
        now: clock.now(),
        clock,
        limits,
        catalogue,
        onRewound,
        archive,
        ...(blobs === undefined ? {} : { blobs }),
      })
    } catch (error) {
      releaseLock(path)
      throw error
    }
  } catch (cause) {
    throw asStoreError(cause, `The store in ${path}`)
  }
}

/** Closes the directory to others. One that belongs to somebody else stays as that one made it. */
async function makeOwn(directory: string): Promise<void> {
  await mkdir(join(directory, 'blobs'), { recursive: true, mode: 0o700 })
  for (const path of [directory, join(directory, 'blobs')]) {
    await chmod(path, 0o700).catch((error: unknown) => {
      if (!(error instanceof Error && 'code' in error && error.code === 'EPERM')) throw error
    })
  }
}

async function openOwned(
  directory: string,
  options: {
    synchronous: Synchronous
    now: number
    limits: Partial<ThreadLimits>
    catalogue: string | null
    onRewound: (error: PaddockError) => void
    clock: Clock
    archive: ArchiveOptions
    blobs?: BlobsOptions
  },
): Promise<OwnedStore> {
  const { log: logFile, catalogue: catalogueFile } = storeFiles(directory)
  const data: SideData = {
    logFile,
    catalogueFile,
    synchronous: options.synchronous,
    now: options.now,
  }
  const url = new URL(import.meta.url.endsWith('.ts') ? './side-worker.ts' : './side-worker.js', import.meta.url)
  // Two that make one file at once would lock each other out: nobody waits for a lock while the journal mode changes.
  openForWriting(catalogueFile, { ...options, migrations: catalogueMigrations }).close()
  // Both threads load at once: loading is nearly all of what opening takes.
  const starting = StoreThread.start(url, data)
  // Told below, once the other thread has come as far.
  starting.catch(() => {})
  const shared: { opened: SharedCatalogue | null } = { opened: null }
  try {
    // Runs once the log has its name.
    const makeReader = async (): Promise<RecorderReader> => {
      const reader = withArchive(remoteLogReads((await starting).thread), openArchiveReader(directory))
      if (options.catalogue === null) return reader
      shared.opened = await openShared(directory, options.catalogue, options.onRewound)
      return located(reader, shared.opened.catalogue, directory)
    }
    const opening = openRecorder({ file: logFile, catalogueFile, ...options }, makeReader)
    const { recorder, recovered } = await opening
    try {
      const home = homeOf(directory)
      const blobs = await openBlobs(directory, home, options.blobs)
      const { thread } = await starting
      const catalogue = shared.opened?.catalogue ?? remoteCatalogue(thread)
      const log = {
        ...remoteArchivingLog(thread),
        archive: recorder.archive.bind(recorder),
        flush: () => recorder.flush(),
      }
      const archiver = openArchiver(directory, home, { log, catalogue, clock: options.clock }, options.archive)
      return new DirectoryStore(directory, recorder, thread, shared.opened, { blobs, archiver }, recovered)
    } catch (error) {
      await recorder.close()
      throw error
    }
  } catch (error) {
    await shared.opened?.close()
    await starting.then(
      ({ thread }) => thread.close(),
      () => {},
    )
    throw error
  }
}

class DirectoryStore implements OwnedStore {
  readonly directory: string
  readonly recorder: OpenedRecorder
  readonly catalogue: Catalogue
  readonly queue: Queue
  readonly trainer: TrainerBook
  readonly changes = new Changes()
  readonly blobs: Blobs
  readonly recovered: Store['recovered']
  readonly #side: StoreThread
  readonly #shared: SharedCatalogue | null
  readonly archiver: Archiver | null
  readonly #blobs: OpenedBlobs
  #closing: Promise<void> | null = null

  constructor(
    directory: string,
    recorder: OpenedRecorder,
    side: StoreThread,
    shared: SharedCatalogue | null,
    { blobs, archiver }: { readonly blobs: OpenedBlobs; readonly archiver: Archiver | null },
    recovered: Store['recovered'],
  ) {
    this.directory = directory
    this.recorder = recorder
    this.catalogue = telling(shared?.catalogue ?? remoteCatalogue(side), this.changes)
    this.queue = shared?.queue ?? remoteQueue(side)
    this.trainer = tellingBook(shared?.trainer ?? remoteTrainerBook(side), this.changes)
    this.blobs = blobs.blobs
    this.#blobs = blobs
    this.archiver = archiver
    this.recovered = recovered
    this.#side = side
    this.#shared = shared
  }

  get blobsState(): OpenedBlobs['state'] {
    return this.#blobs.state
  }

  get rewound(): number {
    return this.#shared?.rewound() ?? 0
  }

  get load(): OpenedRecorder['load'] {
    return this.recorder.load
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /**
   * Goes on after a failing step. The writer's connection is the last to go: only one that may write can fold the
   * write-ahead log into its database and remove it.
   */
  async #close(): Promise<void> {
    const ends = await Promise.allSettled([this.archiver?.close()])
    ends.push(...(await Promise.allSettled([this.#side.close(), this.#blobs.close()])))
    ends.push(...(await Promise.allSettled([this.recorder.close()])))
    ends.push(...(await Promise.allSettled([this.#shared?.close()])))
    releaseLock(this.directory)
    const failed = ends.find((end) => end.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }
}
