/**
 * Columns as bytes: a codec byte, then the payload. Numbers are little-endian, as every platform of Node is.
 *
 * - 0: as it is
 * - 1: zstd
 * - 2: byte planes, then zstd: all lowest bytes, then all second bytes, … For short runs of 4-byte numbers this is
 *   about a sixth smaller than zstd over the numbers themselves, whose repeats pay only in long ones.
 */
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { PaddockError } from '../../core/index.ts'

const raw = 0
const zstd = 1
const planes = 2

/** Below this many bytes a zstd frame's own header eats what it saves. */
const worthPacking = 48
/** Up to this many numbers are split into planes. */
const planesUpTo = 4096

/** Bytes with their codec in front. */
export function packBytes(bytes: Uint8Array): Uint8Array {
  return smallest(bytes, zstd, bytes)
}

/** The bytes of {@link packBytes}, freshly allocated. Throws `STORE_CORRUPT`. */
export function unpackBytes(packed: Uint8Array): Uint8Array<ArrayBuffer> {
  const payload = packed.subarray(1)
  switch (packed[0]) {
    case raw:
      return Uint8Array.from(payload)
    case zstd:
      return inflate(payload)
    case planes:
      return unsplit(inflate(payload))
    default:
      throw new PaddockError('STORE_CORRUPT', `unknown column codec ${packed[0] ?? 'of an empty column'}`)
  }
}

/** Token ids or logprobs. */
export function packNumbers(numbers: Int32Array | Float32Array): Uint8Array {
  const bytes = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength)
  return numbers.length <= planesUpTo ? smallest(bytes, planes, split(bytes)) : packBytes(bytes)
}

/** Token ids again. Throws `STORE_CORRUPT`. */
export function unpackIds(packed: Uint8Array): Int32Array<ArrayBuffer> {
  return new Int32Array(wholeNumbers(unpackBytes(packed)))
}

/** Logprobs again, bit for bit (a NaN keeps being one). Throws `STORE_CORRUPT`. */
export function unpackLogprobs(packed: Uint8Array): Float32Array<ArrayBuffer> {
  return new Float32Array(wholeNumbers(unpackBytes(packed)))
}

function wholeNumbers(bytes: Uint8Array<ArrayBuffer>): ArrayBuffer {
  if (bytes.byteLength % 4 !== 0) throw new PaddockError('STORE_CORRUPT', 'a token column ends inside a number')
  return bytes.buffer
}

function smallest(bytes: Uint8Array, codec: number, arranged: Uint8Array): Uint8Array {
  if (bytes.byteLength >= worthPacking) {
    const packed = zstdCompressSync(arranged)
    if (packed.byteLength < bytes.byteLength) return withCodec(codec, packed)
  }
  return withCodec(raw, bytes)
}

function withCodec(codec: number, payload: Uint8Array): Uint8Array {
  const out = new Uint8Array(payload.byteLength + 1)
  out[0] = codec
  out.set(payload, 1)
  return out
}

function inflate(payload: Uint8Array): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(zstdDecompressSync(payload))
  } catch (error) {
    throw new PaddockError('STORE_CORRUPT', 'a column cannot be decompressed', { cause: error })
  }
}

function split(bytes: Uint8Array): Uint8Array {
  const count = bytes.byteLength / 4
  const out = new Uint8Array(bytes.byteLength)
  for (let index = 0, from = 0; index < count; index += 1, from += 4) {
    out[index] = bytes[from] ?? 0
    out[count + index] = bytes[from + 1] ?? 0
    out[2 * count + index] = bytes[from + 2] ?? 0
    out[3 * count + index] = bytes[from + 3] ?? 0
  }
  return out
}

function unsplit(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const count = bytes.byteLength / 4
  const out = new Uint8Array(bytes.byteLength)
  for (let index = 0, to = 0; index < count; index += 1, to += 4) {
    out[to] = bytes[index] ?? 0
    out[to + 1] = bytes[count + index] ?? 0
    out[to + 2] = bytes[2 * count + index] ?? 0
    out[to + 3] = bytes[3 * count + index] ?? 0
  }
  return out
}
