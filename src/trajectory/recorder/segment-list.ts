/**
 * The segments of a call as a list that is read without inflating anything: for each a byte of marks, its id, its length.
 * An id is 16 bytes where it is a UUID, else the length of its text and its text.
 */
import type { Id } from '../../core/index.ts'
import { readId, uuidBytes, writeUuid } from '../sqlite/index.ts'
import type { ColumnShape } from './columns.ts'
import { type Cursor, cutShort, readVarint, writeVarint } from './varint.ts'

/** What of a segment stands in the list. */
export interface ListedSegment extends ColumnShape {
  readonly id: Id
  /** Place in `segments.ts`. */
  readonly origin: number
  readonly stopCut: boolean
}

const mark = { logprobs: 1, flags: 2, stopCut: 4, textId: 8 } as const
/** The origin stands above the marks. */
const originFrom = 16
/** Beside the id, at most: marks, the id's length, the segment's length. */
const otherBytes = 1 + 5 + 5

/** The list as bytes. */
export function packSegmentList(segments: readonly ListedSegment[]): Uint8Array {
  let most = 0
  for (const { id } of segments) most += otherBytes + 3 * id.length
  const cursor: Cursor = { bytes: Buffer.allocUnsafe(most), at: 0 }
  for (const { id, length, origin, stopCut, logprobs, flags } of segments) {
    const marksAt = cursor.at
    const isText = !writeUuid(id, cursor.bytes, marksAt + 1)
    cursor.bytes[marksAt] =
      origin * originFrom +
      (logprobs ? mark.logprobs : 0) +
      (flags ? mark.flags : 0) +
      (stopCut ? mark.stopCut : 0) +
      (isText ? mark.textId : 0)
    cursor.at += 1
    if (isText) writeText(cursor, id)
    else cursor.at += uuidBytes
    writeVarint(cursor, length)
  }
  return cursor.bytes.subarray(0, cursor.at)
}

function writeText(cursor: Cursor, text: string): void {
  const bytes = Buffer.from(text)
  writeVarint(cursor, bytes.length)
  cursor.bytes.set(bytes, cursor.at)
  cursor.at += bytes.length
}

/** The list again. Throws `STORE_CORRUPT`. */
export function unpackSegmentList(bytes: Uint8Array): readonly ListedSegment[] {
  const cursor: Cursor = { bytes, at: 0 }
  const list: ListedSegment[] = []
  while (cursor.at < bytes.byteLength) {
    const marks = bytes[cursor.at] ?? 0
    cursor.at += 1
    const isText = (marks & mark.textId) !== 0
    const idBytes = isText ? readVarint(cursor) : uuidBytes
    const id = bytes.subarray(cursor.at, cursor.at + idBytes)
    if (id.byteLength < idBytes) throw cutShort()
    cursor.at += idBytes
    list.push({
      id: isText ? Buffer.from(id).toString() : readId(id),
      length: readVarint(cursor),
      origin: Math.floor(marks / originFrom),
      stopCut: (marks & mark.stopCut) !== 0,
      logprobs: (marks & mark.logprobs) !== 0,
      flags: (marks & mark.flags) !== 0,
    })
  }
  return list
}
