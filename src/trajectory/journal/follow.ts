import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import { generationsOf, journalFile, type Place } from './files.ts'
import { frameLength, readFrame, type ReadEntry } from './frame.ts'
import { headBytes, markedEnd } from './head.ts'

const windowBytes = 1024 * 1024

/** An entry with the place behind it. */
export interface FollowedEntry extends ReadEntry {
  readonly end: Place
  readonly sizeBytes: number
}

/** Bytes that were acknowledged and hold no entry that can be read. */
export interface Unreadable {
  readonly from: Place
  /** Where reading goes on. */
  readonly to: Place
  /** Null: the file is gone, or nobody can say how far it was written. */
  readonly bytes: Uint8Array | null
  readonly why: string
}

/** What of damaged bytes is kept beside the log. */
const keptBytes = 2 ** 20

/**
 * The reading end of a journal: entries in order from a place on, over all generations, until there is no whole one.
 * It does not go beyond damage by itself: {@link Follower.unreadable} says what lies there. Parts are views that hold
 * until the next call.
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
    this.#offset = Math.max(from.offset, headBytes)
  }

  /** The next entry, null when none is there yet. */
  next(): FollowedEntry | null {
    for (let sawNewer = false; ;) {
      const entry = this.#entry() ?? this.#entryAnew()
      if (entry !== null) return entry
      const newer = this.#newer()
      if (newer === undefined || !this.#isAtEnd()) return null
      // A generation gets nothing more once there is a newer one; what it got just before that is looked for again.
      if (sawNewer) this.#turnTo(newer)
      sawNewer = !sawNewer
    }
  }

  /** Goes back to a place that was read before. */
  rewind(to: Place): void {
    if (to.generation !== this.#generation) this.#turnTo(to.generation)
    this.#offset = Math.max(to.offset, headBytes)
  }

  /**
   * What lies where {@link Follower.next} found nothing more, of a journal that nobody writes; null: the end of all that
   * was acknowledged.
   */
  unreadable(): Unreadable | null {
    const from = { generation: this.#generation, offset: this.#offset }
    const end = markedEnd(this.#logFile, this.#generation)
    const newer = this.#newer()
    const beyond = newer === undefined ? null : { generation: newer, offset: headBytes }
    if (typeof end !== 'number') {
      const to = beyond ?? { generation: this.#generation + 1, offset: headBytes }
      const why = end === null ? 'the file is gone' : 'the head of the file is damaged, so its end may be missing'
      return { from, to, bytes: null, why }
    }
    if (this.#offset >= end) return null
    const file = readFileSync(journalFile(this.#logFile, this.#generation))
    const length = frameLength(file, this.#offset)
    const next = length === null ? null : this.#offset + length
    const goesOn = next !== null && next < end && isWholeAt(file, next)
    const to = goesOn ? { generation: this.#generation, offset: next } : { generation: this.#generation, offset: end }
    const bytes = file.subarray(this.#offset, Math.min(to.offset, this.#offset + keptBytes))
    const why = file.length < end ? `the file ends at ${file.length} of ${end} bytes` : 'a frame lacks its checksum'
    return { from, to, bytes, why }
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

  #newer(): number | undefined {
    return generationsOf(this.#logFile).find((generation) => generation > this.#generation)
  }

  /** Nothing was acknowledged behind this place of the generation. */
  #isAtEnd(): boolean {
    const end = markedEnd(this.#logFile, this.#generation)
    // A generation from which nothing was read may never have been.
    return end === null ? this.#offset === headBytes : typeof end === 'number' && this.#offset >= end
  }

  #turnTo(generation: number): void {
    this.close()
    this.#generation = generation
    this.#offset = headBytes
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

function isWholeAt(file: Buffer, at: number): boolean {
  const length = frameLength(file, at)
  return length !== null && at + length <= file.length && readFrame(file.subarray(at, at + length)) !== null
}
