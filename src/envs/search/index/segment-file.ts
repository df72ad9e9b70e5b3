import { readFile, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'
import type { Segment } from './segment.ts'

const magic = 'PDKSEG01'
const headerSchema = z.object({
  size: z.int().min(0),
  totalTerms: z.int().min(0),
  terms: z.int().min(0),
  postings: z.int().min(0),
  dictionaryBytes: z.int().min(0),
})

/**
 * Writes a segment: magic, header length, a JSON header, then the sections offsets (u32), documents (u16), counts (u16),
 * lengths (u8) and the dictionary (UTF-8 terms with a line feed between), each on an eight-byte boundary, little-endian.
 */
export async function writeSegment(path: string, segment: Segment): Promise<void> {
  const dictionary = Buffer.from([...segment.terms.keys()].join('\n'))
  const header = Buffer.from(
    JSON.stringify({
      size: segment.size,
      totalTerms: segment.totalTerms,
      terms: segment.terms.size,
      postings: segment.documents.length,
      dictionaryBytes: dictionary.length,
    } satisfies z.infer<typeof headerSchema>),
  )
  const start = Buffer.alloc(padded(12 + header.length))
  start.write(magic, 'latin1')
  start.writeUInt32LE(header.length, 8)
  header.copy(start, 12)
  const { offsets, documents, counts, lengths } = segment
  await writeFile(path, [start, ...[offsets, documents, counts, lengths, dictionary].flatMap(section)])
}

/** Reads a segment. Throws `STORE_CORRUPT` for anything that is not one. */
export async function readSegment(path: string): Promise<Segment> {
  const file = await readFile(path)
  // Typed arrays need an aligned buffer of their own; small files come out of a shared pool.
  const bytes = file.byteOffset % 8 === 0 ? file : Buffer.from(new Uint8Array(file).buffer)
  const header = readHeader(bytes, path)
  let at = padded(12 + bytes.readUInt32LE(8))
  const place = (length: number, width: number): [ArrayBufferLike, number, number] => {
    const found: [ArrayBufferLike, number, number] = [bytes.buffer, bytes.byteOffset + at, length]
    at += padded(length * width)
    return found
  }
  const whole =
    at +
    padded((header.terms + 1) * 4) +
    2 * padded(header.postings * 2) +
    padded(header.size) +
    padded(header.dictionaryBytes)
  if (whole !== bytes.length) throw corrupt(path, `it has ${bytes.length} bytes, not ${whole}`)
  const offsets = new Uint32Array(...place(header.terms + 1, 4))
  const documents = new Uint16Array(...place(header.postings, 2))
  const counts = new Uint16Array(...place(header.postings, 2))
  const lengths = new Uint8Array(...place(header.size, 1))
  const dictionary = bytes.toString('utf8', at, at + header.dictionaryBytes)
  const terms = new Map<string, number>()
  if (header.terms > 0) for (const term of dictionary.split('\n')) terms.set(term, terms.size)
  if (terms.size !== header.terms) throw corrupt(path, `its dictionary has ${terms.size} terms, not ${header.terms}`)
  return { size: header.size, totalTerms: header.totalTerms, lengths, terms, offsets, documents, counts }
}

function readHeader(bytes: Buffer, path: string): z.infer<typeof headerSchema> {
  if (bytes.length < 12 || bytes.toString('latin1', 0, 8) !== magic) throw corrupt(path, 'it is no segment')
  try {
    return headerSchema.parse(JSON.parse(bytes.toString('utf8', 12, 12 + bytes.readUInt32LE(8))))
  } catch (cause) {
    throw corrupt(path, `its header cannot be read: ${String(cause)}`)
  }
}

function section(array: Uint8Array | Uint16Array | Uint32Array): readonly Uint8Array[] {
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
  return [bytes, new Uint8Array(padded(bytes.length) - bytes.length)]
}

function padded(bytes: number): number {
  return Math.ceil(bytes / 8) * 8
}

function corrupt(path: string, what: string): PaddockError {
  return new PaddockError('STORE_CORRUPT', `The index segment ${path} is damaged: ${what}`, {
    data: { path },
    fix: 'Remove the directory of this corpus; it is built again at its next use.',
  })
}
