/**
 * Ids in the database: a UUID takes 16 bytes instead of 36. Text that is no UUID is stored as it is, so that a reader
 * gets back what a writer gave.
 */
import { type Digest, type Id, isId } from '../../core/index.ts'

/** What stands for an id in a column. */
export type StoredId = Uint8Array | string

/** Column value of an id. */
export function storedId(id: Id): StoredId {
  return isId(id) ? Buffer.from(id.replaceAll('-', ''), 'hex') : id
}

/** {@link storedId}, null kept. */
export function storedIdOrNull(id: Id | null): StoredId | null {
  return id === null ? null : storedId(id)
}

/** The id of a column value. */
export function readId(stored: StoredId): Id {
  if (typeof stored === 'string') return stored
  const hex = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** {@link readId}, null kept. */
export function readIdOrNull(stored: StoredId | null): Id | null {
  return stored === null ? null : readId(stored)
}

/** Column value of a SHA-256: 32 bytes. Other text is stored as it is. */
export function storedDigest(digest: Digest): StoredId {
  return /^[0-9a-f]{64}$/.test(digest) ? Buffer.from(digest, 'hex') : digest
}

/** The digest of a column value. */
export function readDigest(stored: StoredId): Digest {
  if (typeof stored === 'string') return stored
  return Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength).toString('hex')
}
