/**
 * Entries of the journal as bytes: length and CRC-32 of what follows, length of the head, the head (JSON), the parts.
 * A frame that was only half written does not have its checksum: it was never acknowledged and does not count.
 */
import { crc32 } from 'node:zlib'
import { PaddockError } from '../../core/index.ts'

/** A fact: what it says as JSON, and the bytes that belong to it. */
export interface Entry {
  readonly head: unknown
  readonly parts: readonly Uint8Array[]
}

const prefixBytes = 8
/** No fact is larger: a length beyond it is no length. */
const maxFrameBytes = 1024 * 2 ** 20

/** An entry as it is written, in pieces. */
export interface Frame {
  readonly pieces: readonly Uint8Array[]
  readonly sizeBytes: number
}

/** Parts up to this size are copied behind the head: a piece of its own costs more than that. */
const worthOwnPiece = 4096

/** An entry as it is written. Its parts must stay as they are until then: large ones are not copied. */
export function framePieces({ head, parts }: Entry): Frame {
  const text = JSON.stringify([head, parts.map((part) => part.byteLength)])
  const textBytes = Buffer.byteLength(text)
  const frontBytes = prefixBytes + 4 + textBytes
  // In order, so only what stands before the first large part.
  let [near, nearBytes, sizeBytes] = [0, frontBytes, frontBytes]
  for (const [place, { byteLength }] of parts.entries()) {
    if (near === place && byteLength <= worthOwnPiece) {
      near += 1
      nearBytes += byteLength
    }
    sizeBytes += byteLength
  }
  const front = Buffer.allocUnsafe(nearBytes)
  front.writeUInt32LE(sizeBytes - prefixBytes, 0)
  front.writeUInt32LE(textBytes, prefixBytes)
  front.write(text, prefixBytes + 4)
  let at = frontBytes
  for (const part of parts.slice(0, near)) {
    front.set(part, at)
    at += part.byteLength
  }
  const far = parts.slice(near)
  let checksum = crc32(front.subarray(prefixBytes))
  for (const part of far) checksum = crc32(part, checksum)
  front.writeUInt32LE(checksum, 4)
  return { pieces: [front, ...far], sizeBytes }
}

/** The same as bytes. */
export function frameOf(entry: Entry): Buffer {
  return Buffer.concat(framePieces(entry).pieces)
}

/** The length of the frame that starts at `at`; null where too few bytes are at hand to tell, or none starts there. */
export function frameLength(bytes: Buffer, at: number): number | null {
  if (bytes.length - at < prefixBytes) return null
  const payload = bytes.readUInt32LE(at)
  return payload < 4 || payload > maxFrameBytes ? null : prefixBytes + payload
}

/** The entry of a whole frame, its parts views of `frame`; null where its checksum is not its own. */
export function readFrame(frame: Buffer): Entry | null {
  if (crc32(frame.subarray(prefixBytes)) !== frame.readUInt32LE(4)) return null
  const textEnd = prefixBytes + 4 + frame.readUInt32LE(prefixBytes)
  // Written by frameOf and by nothing else: the checksum says so.
  const [head, lengths] = JSON.parse(frame.toString('utf8', prefixBytes + 4, textEnd)) as [unknown, number[]]
  const parts: Uint8Array[] = []
  let at = textEnd
  for (const length of lengths) {
    parts.push(frame.subarray(at, at + length))
    at += length
  }
  if (at !== frame.length) throw new PaddockError('STORE_CORRUPT', 'an entry of the journal does not have its length')
  return { head, parts }
}
