import { join } from 'node:path'
import { type Id, objectStoreKeys, type ObjectStoreKeys, type PaddockError } from '../../core/index.ts'
import type { Blobs, BlobsState } from '../contract/index.ts'
import { DirectoryBlobReader, DirectoryBlobs } from './directory-blobs.ts'
import {
  type BlobPlace,
  blobPlaceOf,
  type ObjectStore,
  S3Objects,
  settleBlobPlace,
  SpooledBlobReader,
  SpooledBlobs,
} from './s3/index.ts'

/** Where an owner keeps its blobs. */
export interface BlobsOptions {
  /** Null: in the data directory, or where they are already. */
  readonly s3: ObjectStore | null
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
const standard = { s3: null, spoolMb: 1024, waitMs: 60_000 } as const

/** For the owner of a data directory, whose log is `home`. Throws `BLOBS_OTHER`, `BLOBS_REFUSED`. */
export async function openBlobs(directory: string, home: Id, options: BlobsOptions = standard): Promise<OpenedBlobs> {
  const spool = new DirectoryBlobs(folderOf(directory))
  const place = settleBlobPlace(directory, home, options.s3)
  if (place === null) return { blobs: spool, state: null, close: () => Promise.resolve() }
  const { spoolMb, waitMs, onChange } = options
  const blobs = new SpooledBlobs(spool, objectsOf(place), {
    spoolBytes: spoolMb * 1e6,
    waitMs,
    ...(onChange === undefined ? {} : { onChange }),
  })
  await blobs.open()
  return { blobs, state: () => blobs.state(), close: () => blobs.close() }
}

/** True where blobs of a data directory are in an object store. */
export function isInObjectStore(directory: string): boolean {
  return blobPlaceOf(directory) !== null
}

/** For a reader, at any time. */
export function openBlobReader(directory: string): Pick<Blobs, 'get' | 'has' | 'list'> {
  const place = blobPlaceOf(directory)
  const spool = new DirectoryBlobReader(folderOf(directory))
  return place === null ? spool : new SpooledBlobReader(spool, objectsOf(place))
}

/** Asks the object store of a data directory, or one that is configured; null: neither is. Throws `BLOBS_UNAVAILABLE`, `BLOBS_REFUSED`. */
export async function probeBlobs(
  directory: string,
  asked: ObjectStore | null,
  keys: ObjectStoreKeys | null = objectStoreKeys(),
): Promise<(ObjectStore & { readonly waitingBytes: number }) | null> {
  const known = blobPlaceOf(directory)
  const place = known ?? (asked === null ? null : { ...asked, folder: 'paddock' })
  if (place === null) return null
  await new S3Objects({ place, keys }).probe()
  let waitingBytes = 0
  for await (const { sizeBytes } of new DirectoryBlobReader(folderOf(directory)).list()) waitingBytes += sizeBytes
  return { ...place, waitingBytes }
}

function objectsOf(place: BlobPlace): S3Objects {
  return new S3Objects({ place, keys: objectStoreKeys() })
}
