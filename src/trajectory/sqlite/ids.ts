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
const hyphen = 45
const textLength = 36

/** Writes the 16 bytes of a UUID; false where the text is none as ours are written (small letters), and nothing counts. */
export function writeUuid(id: Id, into: Uint8Array, at: number): boolean {
  return (
    id.length === textLength &&
    id.charCodeAt(8) === hyphen &&
    id.charCodeAt(13) === hyphen &&
    id.charCodeAt(18) === hyphen &&
    id.charCodeAt(23) === hyphen &&
    writeHex(id, 0, 8, into, at) &&
    writeHex(id, 9, 13, into, at + 4) &&
    writeHex(id, 14, 18, into, at + 6) &&
    writeHex(id, 19, 23, into, at + 8) &&
    writeHex(id, 24, textLength, into, at + 10)
  )
}

/** Writes the 32 bytes of a SHA-256; false where the text is none as ours are written, and nothing counts. */
export function writeDigest(digest: Digest, into: Uint8Array, at: number): boolean {
  return digest.length === 64 && writeHex(digest, 0, 64, into, at)
}

function writeHex(text: string, from: number, end: number, into: Uint8Array, at: number): boolean {
  for (let place = from, to = at; place < end; place += 2, to += 1) {
    const high = digits[text.charCodeAt(place)] ?? -1
    const low = digits[text.charCodeAt(place + 1)] ?? -1
    if (high < 0 || low < 0) return false
    into[to] = 16 * high + low
  }
  return true
}

/** {@link storedId}, null kept. */
export function storedIdOrNull(id: Id | null): StoredId | null {
  return id === null ? null : storedId(id)
}

/** Where a UUID's text is put together: one string, and not of pieces that are joined when it is first looked up. */
const text = Buffer.alloc(textLength, '-')
/** Where each byte's two digits stand in it. */
const places = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]
const digitCodes = Buffer.from('0123456789abcdef')

/** The id of a column value. */
export function readId(stored: StoredId): Id {
  if (typeof stored === 'string') return stored
  for (let from = 0; from < uuidBytes; from += 1) {
    const byte = stored[from] ?? 0
    const to = places[from] ?? 0
    text[to] = digitCodes[byte >> 4] ?? 0
    text[to + 1] = digitCodes[byte & 15] ?? 0
  }
  return text.toString('latin1')
}

/** {@link readId}, null kept. */
export function readIdOrNull(stored: StoredId | null): Id | null {
  return stored === null ? null : readId(stored)
}

/** Column value of a SHA-256: 32 bytes. Other text is stored as it is. */
export function storedDigest(digest: Digest): StoredId {
  const bytes = Buffer.allocUnsafe(32)
  return writeDigest(digest, bytes, 0) ? bytes : digest
}

/** The digest of a column value. */
export function readDigest(stored: StoredId): Digest {
  if (typeof stored === 'string') return stored
  return Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength).toString('hex')
}
