/**
 * Ids in the database: a UUID takes 16 bytes instead of 36. Text that is no UUID is stored as it is, so that a reader
 * gets back what a writer gave.
 */
import type { Digest, Id } from '../../core/index.ts'

/** What stands for an id in a column. */
export type StoredId = Uint8Array | string

/** Bytes of a UUID. */
export const uuidBytes = 16

/** Column value of an id. */
export function storedId(id: Id): StoredId {
  const bytes = Buffer.allocUnsafe(uuidBytes)
  return writeUuid(id, bytes, 0) ? bytes : id
}

/** Values of the digits by their character code, -1 where there is none. */
const digits = Int8Array.from({ length: 128 }, (_, code) => '0123456789abcdef'.indexOf(String.fromCharCode(code)))
/** Where the hyphens stand in the text of a UUID. */
const hyphens = [8, 13, 18, 23]
const hyphen = 45
const textLength = 36

/** Writes the 16 bytes of a UUID; false where the text is none as ours are written (small letters), and nothing counts. */
export function writeUuid(id: Id, into: Uint8Array, at: number): boolean {
  if (id.length !== textLength) return false
  let to = at
  for (let from = 0; from < textLength; from += 2) {
    if (hyphens.includes(from)) {
      if (id.charCodeAt(from) !== hyphen) return false
      from += 1
    }
    const high = digits[id.charCodeAt(from)] ?? -1
    const low = digits[id.charCodeAt(from + 1)] ?? -1
    if (high < 0 || low < 0) return false
    into[to] = 16 * high + low
    to += 1
  }
  return true
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
