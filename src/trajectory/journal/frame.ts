/**
 * Entries of the journal as bytes: length and CRC-32 of what follows, length of the head, the head, the parts. A head is
 * JSON, `[head, lengths of the parts]`; or, marked in its length, bytes of the writer's own form, and behind it the number
 * of parts and their lengths. A frame that was only half written does not have its checksum: it was never acknowledged
 * and does not count.
 */
import { crc32 } from 'node:zlib'
import { PaddockError } from '../../core/index.ts'

/** A fact: what it says, and what belongs to it. */
export interface Entry {
  /** JSON, or bytes in a form that the reader of the journal knows. */
  readonly head: unknown
  /** Text is written as UTF-8. */
  readonly parts: readonly (Uint8Array | string)[]
}

/** An entry as it is read. */
export interface ReadEntry {
  readonly head: unknown
  readonly parts: readonly Uint8Array[]
}

const prefixBytes = 8
/** Length of the head. */
const headAt = prefixBytes + 4
/** Set in the length of a head that is no JSON. */
const inBytes = 2 ** 31
/** No fact is larger: a length beyond it is no length. */
const maxFrameBytes = 1024 * 2 ** 20

/** What a queue holds without growing. */
const usualBytes = 256 * 1024
/** More than this is given back once the queue is empty. */
const keptBytes = 2 * 2 ** 20

/** Frames one behind the other in memory that is used again and again: what waits to be written. */
export class FrameQueue {
  #bytes = Buffer.allocUnsafeSlow(usualBytes)
  #from = 0
  #to = 0

  /** Puts the frame of an entry behind the others and tells its size. Everything is copied. */
  push({ head, parts }: Entry): number {
    const end = head instanceof Uint8Array ? this.#putBytes(head, parts) : this.#putJson(head, parts)
    const start = this.#to
    const size = end - start
    this.#bytes.writeUInt32LE(size - prefixBytes, start)
    this.#bytes.writeUInt32LE(crc32(this.#bytes.subarray(start + prefixBytes, end)), start + 4)
    this.#to = end
    return size
  }

  /** The first `count` bytes: a view that holds until the next call. */
  first(count: number): Buffer {
    return this.#bytes.subarray(this.#from, this.#from + count)
  }

  /** Drops the first `count` bytes. */
  drop(count: number): void {
    this.#from += count
    if (this.#from < this.#to) return
    this.clear()
  }

  clear(): void {
    this.#from = 0
    this.#to = 0
    if (this.#bytes.length > keptBytes) this.#bytes = Buffer.allocUnsafeSlow(usualBytes)
  }

  /** Puts all but the prefix of a frame with a JSON head behind the others. Returns where it ends. */
  #putJson(head: unknown, parts: Entry['parts']): number {
    let partBytes = 0
    for (const part of parts) partBytes += sizeOf(part)
    const text = JSON.stringify([head, parts.map(sizeOf)])
    const textBytes = Buffer.byteLength(text)
    this.#makeRoom(headAt + textBytes + partBytes)
    let at = this.#bytes.writeUInt32LE(textBytes, this.#to + prefixBytes)
    at += this.#bytes.write(text, at)
    for (const part of parts) at += this.#put(part, at)
    return at
  }

  /** The same with a head of bytes. How long a text is shows where it is written, and is not asked before. */
  #putBytes(head: Uint8Array, parts: Entry['parts']): number {
    const beforeParts = headAt + head.byteLength + 4 + 4 * parts.length
    let most = beforeParts
    for (const part of parts) most += mostBytesOf(part)
    this.#makeRoom(most)
    this.#bytes.writeUInt32LE(head.byteLength + inBytes, this.#to + prefixBytes)
    this.#bytes.set(head, this.#to + headAt)
    let lengthAt = this.#bytes.writeUInt32LE(parts.length, this.#to + headAt + head.byteLength)
    let at = this.#to + beforeParts
    for (const part of parts) {
      const size = this.#put(part, at)
      lengthAt = this.#bytes.writeUInt32LE(size, lengthAt)
      at += size
    }
    return at
  }

  #put(part: Uint8Array | string, at: number): number {
    if (typeof part === 'string') return this.#bytes.write(part, at)
    this.#bytes.set(part, at)
    return part.byteLength
  }

  #makeRoom(count: number): void {
    if (this.#to + count <= this.#bytes.length) return
    const held = this.#bytes.subarray(this.#from, this.#to)
    const needed = held.length + count
    // What was dropped in front is room too, where that is much.
    const into = 2 * needed <= this.#bytes.length ? this.#bytes : Buffer.allocUnsafeSlow(2 * needed)
    into.set(held)
    this.#bytes = into
    this.#to = held.length
    this.#from = 0
  }
}

/** An entry as bytes of their own. */
export function frameOf(entry: Entry): Buffer {
  const queue = new FrameQueue()
  return Buffer.from(queue.first(queue.push(entry)))
}

/** The length of the frame that starts at `at`; null where too few bytes are at hand to tell, or none starts there. */
export function frameLength(bytes: Buffer, at: number): number | null {
  if (bytes.length - at < prefixBytes) return null
  const payload = bytes.readUInt32LE(at)
  return payload < 4 || payload > maxFrameBytes ? null : prefixBytes + payload
}

/** The entry of a whole frame, a head of bytes and the parts views of `frame`; null where its checksum is not its own. */
export function readFrame(frame: Buffer): ReadEntry | null {
  if (crc32(frame.subarray(prefixBytes)) !== frame.readUInt32LE(4)) return null
  const headBytes = frame.readUInt32LE(prefixBytes)
  return headBytes >= inBytes ? readInBytes(frame, headAt + headBytes - inBytes) : readJson(frame, headAt + headBytes)
}

function readJson(frame: Buffer, textEnd: number): ReadEntry {
  // Written by a FrameQueue and by nothing else: the checksum says so.
  const [head, lengths] = JSON.parse(frame.toString('utf8', headAt, textEnd)) as [unknown, number[]]
  const parts: Uint8Array[] = []
  let at = textEnd
  for (const length of lengths) {
    parts.push(frame.subarray(at, at + length))
    at += length
  }
  return wholeOr(frame, at, { head, parts })
}

function readInBytes(frame: Buffer, headEnd: number): ReadEntry {
  const count = frame.readUInt32LE(headEnd)
  const parts: Uint8Array[] = []
  let at = headEnd + 4 + 4 * count
  for (let place = 0; place < count; place += 1) {
    const length = frame.readUInt32LE(headEnd + 4 + 4 * place)
    parts.push(frame.subarray(at, at + length))
    at += length
  }
  return wholeOr(frame, at, { head: frame.subarray(headAt, headEnd), parts })
}

/** Throws `STORE_CORRUPT` where the parts do not end with the frame. */
function wholeOr(frame: Buffer, end: number, entry: ReadEntry): ReadEntry {
  if (end !== frame.length) throw new PaddockError('STORE_CORRUPT', 'an entry of the journal does not have its length')
  return entry
}

function sizeOf(part: Uint8Array | string): number {
  return typeof part === 'string' ? Buffer.byteLength(part) : part.byteLength
}

/** A text below this many units takes room for the longest that it can be. */
const shortText = 16 * 1024

function mostBytesOf(part: Uint8Array | string): number {
  return typeof part === 'string' && part.length < shortText ? 3 * part.length : sizeOf(part)
}
