import { type Digest, type Id, isPaddockError, PaddockError } from '../../core/index.ts'
import type { Blobs } from '../contract/index.ts'
import type { Objects } from '../objects/index.ts'

/** Objects that were read last, in memory: pages of one session are read one after the other. */
const keptBytes = 32 * 2 ** 20

/** Which object has the records of which session. */
export interface Wanted {
  readonly id: Id
  readonly object: Digest
}

/** Reads objects of archived sessions: from the data directory, where a restore put them, else from the archive. */
export class ArchiveReader {
  readonly #here: Pick<Blobs, 'get' | 'has'>
  readonly #objects: Objects | null
  /** The one that was read last stands last. */
  readonly #kept = new Map<Digest, Uint8Array>()
  #bytes = 0

  constructor(here: Pick<Blobs, 'get' | 'has'>, objects: Objects | null) {
    this.#here = here
    this.#objects = objects
  }

  /** Bytes that have their digest. Throws `ARCHIVE_MISSING`, `ARCHIVE_UNAVAILABLE`, `ARCHIVE_REFUSED`, `STORE_CORRUPT`. */
  async get(wanted: Wanted): Promise<Uint8Array> {
    const kept = this.#kept.get(wanted.object)
    const bytes = kept ?? (await this.#read(wanted))
    this.#keep(wanted.object, bytes)
    return bytes
  }

  async #read({ id, object }: Wanted): Promise<Uint8Array> {
    if (await this.#here.has(object)) {
      try {
        return await this.#here.get(object)
      } catch (error) {
        // Its owner has uploaded it meanwhile.
        if (!isPaddockError(error) || error.code !== 'NOT_FOUND') throw error
      }
    }
    const bytes = await this.#objects?.get(object)
    if (bytes !== null && bytes !== undefined) return bytes
    const key = this.#objects?.keyOf(object) ?? object
    throw new PaddockError('ARCHIVE_MISSING', `the records of session ${id} are in ${key}, which is not there`, {
      data: { session: id, key },
    })
  }

  #keep(object: Digest, bytes: Uint8Array): void {
    if (this.#kept.delete(object)) this.#bytes -= bytes.byteLength
    this.#kept.set(object, bytes)
    this.#bytes += bytes.byteLength
    for (const [oldest, { byteLength }] of this.#kept) {
      if (this.#bytes <= keptBytes) break
      this.#kept.delete(oldest)
      this.#bytes -= byteLength
    }
  }
}
