/** The bodies of a round: `application/vnd.paddock.rows` and JSON. */
import { endianness } from 'node:os'
import type { HandedRound, HandedRowHead, HandedRowWhole } from './contract.ts'

const magic = 'PDKROWS1'

/** Header and arrays begin at multiples of this, from the start of the body. */
const alignment = 8

/**
 * Eight bytes `PDKROWS1`; the length of the header as uint32; the header as JSON; zeros up to a multiple of 8; then the
 * arrays, each at a multiple of 8, at offsets that count from the first. All little-endian.
 */
export function encodeRows({ rows, ...head }: HandedRound): Buffer {
  let size = 0
  const places: { readonly at: number; readonly write: (body: Buffer, at: number) => void }[] = []
  const heads = rows.map((row) => {
    const place = (array: RowArray) => {
      if (array === null) return null
      const dtype = dtypeOf(array)
      const offset = aligned(size)
      size = offset + array.length * widths[dtype]
      places.push({ at: offset, write: (body, at) => writeArray(body, at, array) })
      return { offset, length: array.length, dtype }
    }
    return {
      ...headOf(row),
      arrays: Object.fromEntries(arraysOf(row).map(([name, array]) => [name, place(array)])),
    }
  })
  const header = Buffer.from(JSON.stringify({ ...head, rows: heads }))
  const start = aligned(magic.length + 4 + header.length)
  const body = Buffer.alloc(start + size)
  body.write(magic, 0, 'latin1')
  body.writeUInt32LE(header.length, magic.length)
  header.copy(body, magic.length + 4)
  for (const { at, write } of places) write(body, start + at)
  return body
}

/** The same as JSON; a logprob that is not known is null. */
export function roundJson({ rows, ...head }: HandedRound): unknown {
  return {
    ...head,
    rows: rows.map((row) => ({
      ...headOf(row),
      arrays: Object.fromEntries(arraysOf(row).map(([name, array]) => [name, listOf(array)])),
    })),
  }
}

/** The bytes of an array, little-endian on any machine. */
function littleEndian({ buffer, byteOffset, byteLength }: Int32Array | Float32Array): Buffer {
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  return endianness() === 'LE' ? bytes : Buffer.from(bytes).swap32()
}

type RowArray = Int32Array | Uint8Array | Float32Array | null

/** In the order in which they lie in the body; of those that were not asked for, none. */
function arraysOf(row: HandedRowWhole): readonly (readonly [string, RowArray])[] {
  const { token_ids, loss_mask, logprobs, entropies, observation_mask, ref_logprobs, teacher_logprobs } = row
  const arrays = { token_ids, loss_mask, logprobs, entropies, observation_mask, ref_logprobs, teacher_logprobs }
  const all = Object.entries(arrays)
  return all.flatMap(([name, array]) => (array === undefined ? [] : [[name, array] as const]))
}

function dtypeOf(array: Exclude<RowArray, null>): keyof typeof widths {
  if (array instanceof Float32Array) return 'f4'
  return array instanceof Int32Array ? 'i4' : 'u1'
}

function writeArray(body: Buffer, start: number, array: Exclude<RowArray, null>): void {
  body.set(array instanceof Uint8Array ? array : littleEndian(array), start)
}

function listOf(array: RowArray): readonly (number | null)[] | null {
  return array === null ? null : Array.from(array, (value) => (Number.isNaN(value) ? null : value))
}

const widths = { i4: 4, u1: 1, f4: 4 } as const

function headOf({
  token_ids: _ids,
  loss_mask: _mask,
  logprobs: _logprobs,
  entropies: _entropies,
  observation_mask: _observations,
  ref_logprobs: _reference,
  teacher_logprobs: _teacher,
  ...head
}: HandedRowWhole): HandedRowHead {
  return head
}

function aligned(length: number): number {
  return Math.ceil(length / alignment) * alignment
}
