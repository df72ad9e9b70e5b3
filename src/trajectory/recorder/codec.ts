/**
 * Columns as bytes: a codec byte, then the payload. Numbers are little-endian, as every platform of Node is.
 *
 * - 0: as it is
 * - 1: zstd
 */
import zlib from 'node:zlib'
import { PaddockError } from '../../core/index.ts'

const raw = 0
const zstd = 1

/** Below this many bytes a frame saves less than the making of it costs: as much as the insert of its row. */
const worthPacking = 256
/**
 * Up to this many numbers are split into planes: for short runs of 4-byte numbers zstd makes about a sixth less of them than
 * of the numbers themselves, whose repeats pay only in long ones.
 */
export const planesUpTo = 4096

/** Bytes with their codec in front. */
export function packBytes(bytes: Uint8Array): Uint8Array {
  if (bytes.byteLength >= worthPacking) {
    // Told the size, the compressor takes small tables and the frame says how large its content is; one output chunk
    // that surely holds the frame is not grown. Higher levels cost twice the time for a hundredth of the size here.
    const packed = zlib.zstdCompressSync(bytes, {
      pledgedSrcSize: bytes.byteLength,
      chunkSize: Math.max(64, Math.min(bytes.byteLength + 64, 128 * 1024)),
      params: { [zlib.constants.ZSTD_c_compressionLevel]: 1 },
    })
    if (packed.byteLength < bytes.byteLength) return withCodec(zstd, packed)
  }
  return withCodec(raw, bytes)
}

/** The bytes of {@link packBytes}, freshly allocated. Throws `STORE_CORRUPT`. */
export function unpackBytes(packed: Uint8Array): Uint8Array<ArrayBuffer> {
  const payload = packed.subarray(1)
  switch (packed[0]) {
    case raw:
      return Uint8Array.from(payload)
    case zstd:
      return inflate(payload)
    default:
      throw new PaddockError('STORE_CORRUPT', `unknown column codec ${packed[0] ?? 'of an empty column'}`)
  }
}

function withCodec(codec: number, payload: Uint8Array): Uint8Array {
  // All of it is written, so it may come out of a pool: memory of its own costs a small column more than the copy.
  const out = Buffer.allocUnsafe(payload.byteLength + 1)
  out[0] = codec
  out.set(payload, 1)
  return out
}

function inflate(payload: Uint8Array): Uint8Array<ArrayBuffer> {
  try {
    const size = contentSize(payload)
    const out = zlib.zstdDecompressSync(payload, size === null ? {} : { chunkSize: Math.max(64, size) })
    const { buffer } = out
    return buffer instanceof ArrayBuffer && buffer.byteLength === out.byteLength
      ? new Uint8Array(buffer)
      : Uint8Array.from(out)
  } catch (error) {
    throw new PaddockError('STORE_CORRUPT', 'a column cannot be decompressed', { cause: error })
  }
}

/** No column is larger; a frame that claims to be is inflated step by step. */
const maxOneChunk = 16 * 2 ** 20

/** What a zstd frame says of the size of its content (RFC 8878 §3.1.1.1); null where it says nothing. */
function contentSize(frame: Uint8Array): number | null {
  const bytes = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength)
  const descriptor = bytes[4] ?? 0
  const flag = descriptor >> 6
  const oneSegment = (descriptor >> 5) & 1
  const at = 5 + (oneSegment === 1 ? 0 : 1) + ((1 << (descriptor & 3)) >> 1)
  if (bytes.length < at + 8) return null
  const size =
    flag === 0
      ? oneSegment === 1
        ? (bytes[at] ?? 0)
        : null
      : flag === 1
        ? bytes.readUInt16LE(at) + 256
        : flag === 2
          ? bytes.readUInt32LE(at)
          : null
  return size === null || size > maxOneChunk ? null : size
}

/**
 * Puts all lowest bytes of 4-byte numbers at `at`, all second bytes `stride` behind that, … Returns where the next numbers
 * of the same planes go.
 */
export function splitPlanes(bytes: Uint8Array, out: Uint8Array, at: number, stride: number): number {
  let to = at
  for (let from = 0; from + 3 < bytes.length; from += 4, to += 1) {
    out[to] = bytes[from] ?? 0
    out[to + stride] = bytes[from + 1] ?? 0
    out[to + 2 * stride] = bytes[from + 2] ?? 0
    out[to + 3 * stride] = bytes[from + 3] ?? 0
  }
  return to
}

/** The numbers of {@link splitPlanes}. */
export function unsplitPlanes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
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
