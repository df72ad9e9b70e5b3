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

/** An entry as it is written, in pieces: what stands before its parts, and the parts themselves, which are not copied. */
export interface Frame {
  readonly pieces: readonly Uint8Array[]
  readonly sizeBytes: number
}

/** An entry as it is written. The parts must stay as they are until then. */
export function framePieces({ head, parts }: Entry): Frame {
  const text = JSON.stringify([head, parts.map((part) => part.byteLength)])
  const textBytes = Buffer.byteLength(text)
  const front = Buffer.allocUnsafe(prefixBytes + 4 + textBytes)
  let sizeBytes = front.byteLength
  for (const part of parts) sizeBytes += part.byteLength
  front.writeUInt32LE(sizeBytes - prefixBytes, 0)
  front.writeUInt32LE(textBytes, prefixBytes)
  front.write(text, prefixBytes + 4)
  let checksum = crc32(front.subarray(prefixBytes))
  for (const part of parts) checksum = crc32(part, checksum)
  front.writeUInt32LE(checksum, 4)
  return { pieces: [front, ...parts], sizeBytes }
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
