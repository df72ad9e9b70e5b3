import { join } from 'node:path'
import type { Id, PaddockError } from '../../core/index.ts'
import type { Blobs, BlobsState } from '../contract/index.ts'
import { nameOf, objectsOf, type ObjectsStore, placeOf, settlePlace } from '../objects/index.ts'
import { DirectoryBlobReader, DirectoryBlobs } from './directory-blobs.ts'
import { SpooledBlobReader, SpooledBlobs } from './spooled-blobs.ts'

/** Where an owner keeps its blobs. */
export interface BlobsOptions {
  /** Null: in the data directory, or where they are already. */
  readonly store: ObjectsStore | null
  readonly spoolMb: number
  readonly waitMs: number
  /** The store went away, for the reason, or came back (null). */
  readonly onChange?: (why: PaddockError | null) => void
}

/** Blobs of an owner. */
export interface OpenedBlobs {
  readonly blobs: Blobs
  /** Null: they are in the data directory. */
  readonly state: (() => BlobsState) | null
  close(): Promise<void>
}

const folderOf = (directory: string): string => join(directory, 'blobs')
const standard = { store: null, spoolMb: 1024, waitMs: 60_000 } as const

/** For the owner of a data directory, whose log is `home`. Throws `BLOBS_OTHER`, `BLOBS_REFUSED`. */
export async function openBlobs(directory: string, home: Id, options: BlobsOptions = standard): Promise<OpenedBlobs> {
  const spool = new DirectoryBlobs(folderOf(directory))
  const place = settlePlace(directory, 'blobs', options.store, () => home)
  if (place === null) return { blobs: spool, state: null, close: () => Promise.resolve() }
  const { spoolMb, waitMs, onChange } = options
  const blobs = new SpooledBlobs(spool, objectsOf(place, 'blobs'), {
    spoolBytes: spoolMb * 1e6,
    waitMs,
    ...(onChange === undefined ? {} : { onChange }),
  })
  await blobs.open()
  return { blobs, state: () => blobs.state(), close: () => blobs.close() }
}

/** True where blobs of a data directory are not in it. */
export function areElsewhere(directory: string): boolean {
  return placeOf(directory, 'blobs') !== null
}

/** For a reader, at any time. */
export function openBlobReader(directory: string): Pick<Blobs, 'get' | 'has' | 'list'> {
  const place = placeOf(directory, 'blobs')
  const spool = new DirectoryBlobReader(folderOf(directory))
  return place === null ? spool : new SpooledBlobReader(spool, objectsOf(place, 'blobs'))
}

/** A store of blobs that answers. */
export interface BlobsProbed {
  /** For people. */
  readonly name: string
  readonly store: ObjectsStore
  readonly waitingBytes: number
}

/** Asks the store of a data directory's blobs, or one that is configured; null: neither is. Throws `BLOBS_UNAVAILABLE`, `BLOBS_REFUSED`. */
export async function probeBlobs(directory: string, asked: ObjectsStore | null): Promise<BlobsProbed | null> {
  const known = placeOf(directory, 'blobs')
  const store = known ?? asked
  if (store === null) return null
  // A directory that is configured and not begun has no folder yet.
  await objectsOf(known ?? { ...store, folder: 's3' in store ? 'paddock' : '' }, 'blobs').probe()
  let waitingBytes = 0
  for await (const { sizeBytes } of new DirectoryBlobReader(folderOf(directory)).list()) waitingBytes += sizeBytes
  return { name: nameOf(store), store, waitingBytes }
}
