/**
 * The first bytes of a journal's file: how far it is written. What lies before that mark was acknowledged, so a frame
 * there that cannot be read is damage; behind it may be the beginning of a frame that its writer did not live to finish.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { generationsOf, journalFile, type Place } from './files.ts'

/** Where the frames begin. */
export const headBytes = 24
const magic = 0x314b4450
const crcAt = 20

/** The head of a file that is written up to `end`, in memory that the next call uses again. */
export function headOf(generation: number, end: number): Buffer {
  head.writeUInt32LE(magic, 0)
  head.writeDoubleLE(generation, 4)
  head.writeDoubleLE(end, 12)
  head.writeUInt32LE(crc32(head.subarray(0, crcAt)), crcAt)
  return head
}

const head = Buffer.allocUnsafeSlow(headBytes)

/** How far a generation was written; `damaged`: its head cannot be read; null: there is no such file. */
export function markedEnd(logFile: string, generation: number): number | 'damaged' | null {
  let fd: number
  try {
    fd = openSync(journalFile(logFile, generation), 'r')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
  try {
    const bytes = Buffer.alloc(headBytes)
    const read = readSync(fd, bytes, 0, headBytes, 0)
    const whole =
      read === headBytes &&
      bytes.readUInt32LE(0) === magic &&
      bytes.readDoubleLE(4) === generation &&
      bytes.readUInt32LE(crcAt) === crc32(bytes.subarray(0, crcAt))
    return whole ? bytes.readDoubleLE(12) : 'damaged'
  } finally {
    closeSync(fd)
  }
}

/** Behind what is written so far, as another process sees it; null where there is no journal, or none that tells. */
export function writtenTo(logFile: string): Place | null {
  const generation = generationsOf(logFile).at(-1)
  if (generation === undefined) return null
  const end = markedEnd(logFile, generation)
  return typeof end === 'number' ? { generation, offset: end } : null
}
