/** Content by SHA-256. */
import type { Digest } from '../../core/index.ts'

/** Content by hash. */
export interface Blobs {
  put(content: Uint8Array): Promise<Digest>
  /** Throws `NOT_FOUND`; `STORE_CORRUPT` when the content does not have its digest. */
  get(digest: Digest): Promise<Uint8Array>
  has(digest: Digest): Promise<boolean>
  list(): AsyncIterable<{ readonly digest: Digest; readonly sizeBytes: number }>
}

/** How blobs stand that go to an object store. */
export interface BlobsState {
  /** Blobs in the data directory that are not in the store yet. */
  readonly waiting: number
  readonly waitingBytes: number
  /** Uploads that failed since the start. */
  readonly failures: number
  /** Why the store is not to be had; null: it is. */
  readonly away: string | null
  /** No more may wait: what needs room waits for the store, then fails. */
  readonly full: boolean
}
