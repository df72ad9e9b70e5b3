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
