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
  const heads = rows.map((row) => {
    const place = (length: number, dtype: keyof typeof widths) => {
      const offset = aligned(size)
      size = offset + length * widths[dtype]
      return { offset, length, dtype }
    }
    return {
      ...headOf(row),
      arrays: {
        token_ids: place(row.n_tokens, 'i4'),
        loss_mask: place(row.n_tokens, 'u1'),
        logprobs: place(row.n_tokens, 'f4'),
      },
    }
  })
  const header = Buffer.from(JSON.stringify({ ...head, rows: heads }))
  const start = aligned(magic.length + 4 + header.length)
  const body = Buffer.alloc(start + size)
  body.write(magic, 0, 'latin1')
  body.writeUInt32LE(header.length, magic.length)
  header.copy(body, magic.length + 4)
  rows.forEach((row, i) => {
    const { token_ids: ids, loss_mask: mask, logprobs } = heads[i]?.arrays ?? never()
    body.set(littleEndian(row.token_ids), start + ids.offset)
    body.set(row.loss_mask, start + mask.offset)
    body.set(littleEndian(row.logprobs), start + logprobs.offset)
  })
  return body
}

/** The same as JSON; a logprob that is not known is null. */
export function roundJson({ rows, ...head }: HandedRound): unknown {
  return {
    ...head,
    rows: rows.map((row) => ({
      ...headOf(row),
      arrays: {
        token_ids: [...row.token_ids],
        loss_mask: [...row.loss_mask],
        logprobs: Array.from(row.logprobs, (logprob) => (Number.isNaN(logprob) ? null : logprob)),
      },
    })),
  }
}

/** The bytes of an array, little-endian on any machine. */
function littleEndian({ buffer, byteOffset, byteLength }: Int32Array | Float32Array): Buffer {
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  return endianness() === 'LE' ? bytes : Buffer.from(bytes).swap32()
}

const widths = { i4: 4, u1: 1, f4: 4 } as const

function headOf({ token_ids: _ids, loss_mask: _mask, logprobs: _logprobs, ...head }: HandedRowWhole): HandedRowHead {
  return head
}

function aligned(length: number): number {
  return Math.ceil(length / alignment) * alignment
}

function never(): never {
  throw new Error('a row without a place')
}
