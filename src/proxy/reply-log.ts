import type { ReplyMark } from '../trajectory/index.ts'
import { type ByteEdit, copyEdited, editedSize } from './dialects/chat/chunk-scan.ts'

const firstBytes = 1024
const noBytes = Buffer.alloc(0)
/** Stays empty. */
const noNumbers: number[] = []

/**
 * The reply of a call as it grows: its bytes in one piece of memory and where each event begins. An object per event
 * would weigh more than the event, for as long as the stream is open.
 */
export class ReplyLog {
  private buffer = noBytes
  private used = 0
  private offsets = noNumbers
  private times = noNumbers

  get length(): number {
    return this.used
  }

  /** Adds an event, with the edits done, that came `atMs` after the call began. */
  add(bytes: Buffer, edits: readonly ByteEdit[], atMs: number): void {
    // An answer that is one piece needs no arrays with room for more.
    if (this.offsets === noNumbers) {
      this.offsets = [0]
      this.times = [atMs]
    } else {
      this.offsets.push(this.used)
      this.times.push(atMs)
    }
    const end = this.used + editedSize(bytes, edits)
    if (end > this.buffer.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(firstBytes, end, 2 * this.used))
      this.buffer.copy(grown, 0, 0, this.used)
      this.buffer = grown
    }
    copyEdited(bytes, edits, this.buffer, this.used)
    this.used = end
  }

  /** What holds the bytes, from its beginning on, with room for more. */
  get memory(): Buffer {
    return this.buffer
  }

  /** A view of bytes `[start, end)`; it stays as it is while the reply grows. */
  bytes(start = 0, end = this.used): Buffer {
    // Of a whole answer all of the memory is asked for, more than once: no view of it is needed.
    return start === 0 && end === this.buffer.length ? this.buffer : this.buffer.subarray(start, end)
  }

  /** Where the events begin, and when they came. */
  marks(): readonly ReplyMark[] {
    return this.offsets.map((offset, place) => ({ offset, atMs: this.times[place] ?? 0 }))
  }

  /** Only the bytes are asked for from now on. */
  letMarksGo(): void {
    this.offsets = noNumbers
    this.times = noNumbers
  }
}
