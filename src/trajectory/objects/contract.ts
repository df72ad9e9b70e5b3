import type { Digest } from '../../core/index.ts'

/** An object as a store lists it. */
export interface ListedObject {
  readonly digest: Digest
  readonly sizeBytes: number
  /** When it was written, by the store's clock; null: the store does not say. Milliseconds since the epoch. */
  readonly at: number | null
}

/** Content by SHA-256 in one folder of an object store, or of a directory that machines share. */
export interface Objects {
  /** Where an object is, for people. Throws `NOT_FOUND` for what is no digest. */
  keyOf(digest: Digest): string
  /** Resolves when the object is there with its size. */
  put(digest: Digest, content: Uint8Array<ArrayBuffer>, signal?: AbortSignal): Promise<void>
  /** Null: there is none. Throws `STORE_CORRUPT` where it does not have its digest. */
  get(digest: Digest, signal?: AbortSignal): Promise<Uint8Array | null>
  /** In bytes; null: there is none. */
  size(digest: Digest, signal?: AbortSignal): Promise<number | null>
  /** In order of digest, as far as the store lists them by now. */
  list(signal?: AbortSignal): AsyncIterable<ListedObject>
  /** Resolves when there is none of that name. */
  remove(digest: Digest): Promise<void>
  /** That it is there and may be listed. */
  probe(signal?: AbortSignal): Promise<void>
}
