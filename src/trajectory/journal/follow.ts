import { closeSync, openSync, readSync } from 'node:fs'
import { generationsOf, journalFile, type Place } from './files.ts'
import { frameLength, readFrame, type ReadEntry } from './frame.ts'

const windowBytes = 1024 * 1024

/** An entry with the place behind it. */
export interface FollowedEntry extends ReadEntry {
  readonly end: Place
  readonly sizeBytes: number
}

/**
 * The reading end of a journal: entries in order from a place on, over all generations, until there is no whole one.
 * Parts are views that hold until the next call.
 */
export class Follower {
  readonly #logFile: string
  #generation: number
  #offset: number
  #fd: number | null = null
  #buffer = Buffer.allocUnsafe(windowBytes)
  /** What of the buffer holds bytes of the file. */
  #window: Buffer = this.#buffer.subarray(0, 0)
  /** Where in the file the window begins. */
  #windowAt = 0

  constructor(logFile: string, from: Place) {
    this.#logFile = logFile
    this.#generation = from.generation
    this.#offset = from.offset
  }

  /** The next entry, null when none is there yet. */
  next(): FollowedEntry | null {
    for (let sawNewer = false; ;) {
      const entry = this.#entry() ?? this.#entryAnew()
      if (entry !== null) return entry
      const newer = generationsOf(this.#logFile).find((generation) => generation > this.#generation)
      if (newer === undefined) return null
      // A generation gets nothing more once there is a newer one; what it got just before that is looked for again.
      if (sawNewer) this.#turnTo(newer)
      sawNewer = !sawNewer
    }
  }

  /** Goes back to a place that was read before. */
  rewind(to: Place): void {
    if (to.generation !== this.#generation) this.#turnTo(to.generation)
    this.#offset = to.offset
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd)
    this.#fd = null
  }

  #entry(): FollowedEntry | null {
    const frame = this.#frame()
    const entry = frame === null ? null : readFrame(frame)
    if (frame === null || entry === null) return null
    this.#offset += frame.length
    const end = { generation: this.#generation, offset: this.#offset }
    return { head: entry.head, parts: entry.parts, end, sizeBytes: frame.length }
  }

  /**
   * The same from the file. What was at hand may be older than what is written by now: the start of a frame that was being
   * written, or what was left of one that the disk had no room for.
   */
  #entryAnew(): FollowedEntry | null {
    if (this.#window.length === 0) return null
    this.#forget()
    const entry = this.#entry()
    if (entry === null) this.#forget()
    return entry
  }

  #turnTo(generation: number): void {
    this.close()
    this.#generation = generation
    this.#offset = 0
    this.#forget()
  }

  #forget(): void {
    this.#window = this.#buffer.subarray(0, 0)
  }

  #frame(): Buffer | null {
    const head = this.#bytes(8)
    const length = head === null ? null : frameLength(head, 0)
    return length === null ? null : this.#bytes(length)
  }

  /** `count` bytes at the offset, null where the file does not have them. */
  #bytes(count: number): Buffer | null {
    const start = this.#offset - this.#windowAt
    if (start >= 0 && start + count <= this.#window.length) return this.#window.subarray(start, start + count)
    const fd = this.#open()
    if (fd === null) return null
    if (this.#buffer.length < count) this.#buffer = Buffer.allocUnsafe(count)
    let filled = 0
    for (;;) {
      const read = readSync(fd, this.#buffer, filled, this.#buffer.length - filled, this.#offset + filled)
      filled += read
      if (read === 0 || filled === this.#buffer.length) break
    }
    this.#window = this.#buffer.subarray(0, filled)
    this.#windowAt = this.#offset
    return filled < count ? null : this.#window.subarray(0, count)
  }

  #open(): number | null {
    if (this.#fd !== null) return this.#fd
    try {
      this.#fd = openSync(journalFile(this.#logFile, this.#generation), 'r')
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
      throw error
    }
    return this.#fd
  }
}
