import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type Clock, isPaddockError, PaddockError, systemClock } from '../../core/index.ts'
import { DirectoryBlobs } from '../blobs/index.ts'
import type { Blobs, Catalogue, Queue, RecorderReader, Store } from '../contract/index.ts'
import { openRecorder, type OpenedRecorder } from '../recorder/index.ts'
import { StoreThread, type Synchronous, type ThreadLimits } from '../sqlite/index.ts'
import { type Owner, releaseLock, takeLock } from './lock.ts'
import { remoteCatalogue, remoteLogReader, remoteQueue } from './remote.ts'
import type { SideData } from './side-worker.ts'

/** How a data directory is opened by its owner. */
export interface StoreOptions {
  /** Default `normal`: safe against the death of the process; `full`: also against power loss. */
  readonly synchronous?: Synchronous
  readonly clock?: Clock
  /** Bounds of what may be under way to the writer thread. */
  readonly limits?: Partial<ThreadLimits>
}

/** A store with what its owner may watch. */
export interface OwnedStore extends Store {
  /** Requests and bytes on their way to the log. */
  readonly load: OpenedRecorder['load']
}

/**
 * Opens a data directory as its only owner: makes it where needed, takes the lock, brings schemas forward and marks
 * calls that were in flight as `interrupted`. Throws `STORE_LOCKED`, `STORE_SCHEMA`, `STORE_CORRUPT`, `STORE_FAILED`.
 */
export async function openStore(directory: string, options: StoreOptions = {}): Promise<OwnedStore> {
  const path = resolve(directory)
  const { synchronous = 'normal', clock = systemClock, limits = {} } = options
  try {
    await mkdir(join(path, 'blobs'), { recursive: true })
    const owner = takeLock(path, clock.now())
    try {
      return await openOwned(path, owner, { synchronous, now: clock.now(), limits })
    } catch (error) {
      releaseLock(path, owner)
      throw error
    }
  } catch (cause) {
    if (isPaddockError(cause)) throw cause
    const why = cause instanceof Error ? cause.message : String(cause)
    const corrupt = cause instanceof Error && 'code' in cause && /^SQLITE_(CORRUPT|NOTADB)/.test(String(cause.code))
    const code = corrupt ? 'STORE_CORRUPT' : 'STORE_FAILED'
    throw new PaddockError(code, `The store in ${path} cannot be opened: ${why}`, { cause })
  }
}

async function openOwned(
  directory: string,
  owner: Owner,
  options: { synchronous: Synchronous; now: number; limits: Partial<ThreadLimits> },
): Promise<OwnedStore> {
  const logFile = join(directory, 'log.sqlite')
  const data: SideData = {
    logFile,
    catalogueFile: join(directory, 'catalogue.sqlite'),
    synchronous: options.synchronous,
    now: options.now,
  }
  const url = new URL(import.meta.url.endsWith('.ts') ? './side-worker.ts' : './side-worker.js', import.meta.url)
  // Both threads load at once: loading is nearly all of what opening takes.
  const starting = StoreThread.start(url, data)
  // Told below, once the other thread has come as far.
  starting.catch(() => {})
  try {
    const makeReader = async (): Promise<RecorderReader> => remoteLogReader((await starting).thread)
    const { recorder, interruptedCalls } = await openRecorder({ file: logFile, ...options }, makeReader)
    return new DirectoryStore(directory, owner, recorder, (await starting).thread, interruptedCalls)
  } catch (error) {
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
  readonly blobs: Blobs
  readonly recovered: { readonly interruptedCalls: number }
  readonly #owner: Owner
  readonly #side: StoreThread
  #closing: Promise<void> | null = null

  constructor(directory: string, owner: Owner, recorder: OpenedRecorder, side: StoreThread, interruptedCalls: number) {
    this.directory = directory
    this.recorder = recorder
    this.catalogue = remoteCatalogue(side)
    this.queue = remoteQueue(side)
    this.blobs = new DirectoryBlobs(join(directory, 'blobs'))
    this.recovered = { interruptedCalls }
    this.#owner = owner
    this.#side = side
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
    const ends = await Promise.allSettled([this.#side.close()])
    ends.push(...(await Promise.allSettled([this.recorder.close()])))
    releaseLock(this.directory, this.#owner)
    const failed = ends.find((end) => end.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }
}
