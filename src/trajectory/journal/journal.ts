import { closeSync, fdatasync, openSync, renameSync, writeSync } from 'node:fs'
import { PaddockError } from '../../core/index.ts'
import { journalFile, type Place } from './files.ts'
import { headBytes, headOf } from './head.ts'

/** A new file is begun behind this many bytes, so that what was read can be removed. */
const generationBytes = 32 * 2 ** 20

/**
 * The writing end of a journal. `append` has written when it returns: the bytes are the kernel's and survive the death
 * of this process. It is one `write` to the page cache, microseconds for a fact, and needs no other thread.
 */
export class Journal {
  readonly #logFile: string
  readonly #generationBytes: number
  #fd: number
  #generation: number
  #offset = headBytes
  #sync: { readonly running: Promise<void>; next: Promise<void> | null } | null = null

  /** Begins a generation, which must be newer than every other one. */
  constructor(logFile: string, generation: number, sizeBytes: number = generationBytes) {
    this.#logFile = logFile
    this.#generationBytes = sizeBytes
    this.#generation = generation
    this.#fd = begun(logFile, generation)
  }

  /** Behind the last entry. */
  get end(): Place {
    return { generation: this.#generation, offset: this.#offset }
  }

  /** Writes frames, one behind the other: all of them, or throws `STORE_FAILED` and has written nothing that counts. */
  append(frames: Uint8Array): void {
    const { length } = frames
    try {
      if (this.#offset - headBytes >= this.#generationBytes && this.#sync === null) this.#begin()
      let written = 0
      while (written < length) written += writeSync(this.#fd, frames, written, length - written, this.#offset + written)
      writeSync(this.#fd, headOf(this.#generation, this.#offset + length), 0, headBytes, 0)
    } catch (cause) {
      // The next frame overwrites what came of this one, which lies behind the mark.
      throw new PaddockError('STORE_FAILED', 'The journal cannot be written.', { cause })
    }
    this.#offset += length
  }

  /** Resolves when everything appended so far is on the medium, also against power loss. Calls share one `fdatasync`. */
  synced(): Promise<void> {
    if (this.#sync === null) return this.#startSync()
    // The running one may have begun before the last entry.
    this.#sync.next ??= this.#sync.running.then(
      () => this.#startSync(),
      () => this.#startSync(),
    )
    return this.#sync.next
  }

  close(): void {
    closeSync(this.#fd)
  }

  #begin(): void {
    const next = begun(this.#logFile, this.#generation + 1)
    closeSync(this.#fd)
    this.#fd = next
    this.#generation += 1
    this.#offset = headBytes
  }

  #startSync(): Promise<void> {
    const running = new Promise<void>((resolve, reject) => {
      fdatasync(this.#fd, (error) => {
        if (this.#sync?.next === null) this.#sync = null
        if (error === null) resolve()
        else reject(new PaddockError('STORE_FAILED', 'The journal cannot be synced.', { cause: error }))
      })
    })
    this.#sync = { running, next: null }
    return running
  }
}

/** A new file with its head; it has its name only once it has that. */
function begun(logFile: string, generation: number): number {
  const file = journalFile(logFile, generation)
  const fd = openSync(`${file}.new`, 'w', 0o600)
  try {
    writeSync(fd, headOf(generation, headBytes), 0, headBytes, 0)
    renameSync(`${file}.new`, file)
  } catch (error) {
    closeSync(fd)
    throw error
  }
  return fd
}
