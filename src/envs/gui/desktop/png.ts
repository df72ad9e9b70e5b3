import { promisify } from 'node:util'
import { constants, crc32, deflateRaw } from 'node:zlib'
import { type Checksum, filteredRows } from './png-rows.ts'

const compress = promisify(deflateRaw)
const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
/** How zlib's stream begins (RFC 1950): deflate with a window of 32 KiB, quickly compressed. */
const zlibHead = Buffer.from([0x78, 0x01])
/** An empty last block of deflate (RFC 1951, 3.2.6). */
const lastBlock = Buffer.from([0x03, 0x00])
const adlerBase = 65_521

/** Rows that are compressed together, by themselves: where nothing in them has changed they are not compressed again. */
const stripRows = 64

interface Strip {
  readonly chunk: Buffer
  readonly checksum: Checksum
}

/**
 * The PNG (third edition) of a screen that changes, from pixels as an X server of depth 24 gives them: blue, green, red, and
 * a byte that means nothing. Quick rather than small: the lowest level of compression, in threads of zlib's. Only strips of
 * rows that differ from the picture before are made anew.
 */
export class PngScreen {
  readonly #width: number
  readonly #height: number
  /** The pixels that the strips were made of. */
  readonly #made: Buffer
  readonly #strips: (Promise<Strip> | null)[]

  constructor(width: number, height: number) {
    this.#width = width
    this.#height = height
    this.#made = Buffer.alloc(width * height * 4)
    this.#strips = Array.from({ length: Math.ceil(height / stripRows) }, () => null)
  }

  /** The pixels are read before this returns. */
  async of(pixels: Buffer): Promise<Buffer> {
    for (const at of this.#strips.keys()) this.#renew(at, pixels)
    const strips = await Promise.all(this.#strips.filter((strip) => strip !== null))
    const header = Buffer.alloc(13)
    header.writeUInt32BE(this.#width, 0)
    header.writeUInt32BE(this.#height, 4)
    // 8 bits a sample, red green blue, the only methods of compression and filtering, not interlaced.
    header.set([8, 2, 0, 0, 0], 8)
    return Buffer.concat([
      signature,
      chunk('IHDR', header),
      chunk('IDAT', zlibHead),
      ...strips.map((strip) => strip.chunk),
      chunk('IDAT', Buffer.concat([lastBlock, adler(strips)])),
      chunk('IEND', Buffer.alloc(0)),
    ])
  }

  #renew(at: number, pixels: Buffer): void {
    const first = at * stripRows
    const rows = Math.min(stripRows, this.#height - first)
    const [from, to] = [first * this.#width * 4, (first + rows) * this.#width * 4]
    if (this.#strips[at] !== null && pixels.compare(this.#made, from, to, from, to) === 0) return
    pixels.copy(this.#made, from, from, to)
    const { lines, checksum } = filteredRows(pixels.subarray(from, to), this.#width)
    // Ends on a whole byte, so that the next strip's may follow.
    const strip = compress(lines, { level: 1, finishFlush: constants.Z_SYNC_FLUSH, chunkSize: 1 << 17 }).then(
      (data) => ({
        chunk: chunk('IDAT', data),
        checksum,
      }),
    )
    this.#strips[at] = strip
    strip.catch(() => {
      if (this.#strips[at] === strip) this.#strips[at] = null
    })
  }
}

/** Adler-32 (RFC 1950, 9) of all strips one after the other, out of that of each. */
function adler(strips: readonly Strip[]): Buffer {
  let [low, high] = [1, 0]
  for (const { checksum } of strips) {
    high = (high + checksum.bytes * low + checksum.high) % adlerBase
    low = (low + checksum.low) % adlerBase
  }
  const out = Buffer.alloc(4)
  out.writeUInt16BE(high, 0)
  out.writeUInt16BE(low, 2)
  return out
}

function chunk(type: string, data: Uint8Array): Buffer {
  const out = Buffer.allocUnsafe(data.length + 12)
  out.writeUInt32BE(data.length, 0)
  out.write(type, 4, 'latin1')
  out.set(data, 8)
  out.writeUInt32BE(crc32(out.subarray(4, data.length + 8)), data.length + 8)
  return out
}
