import { promisify } from 'node:util'
import { crc32, deflate } from 'node:zlib'

const compress = promisify(deflate)
const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/**
 * A PNG (third edition) of pixels as an X server of depth 24 gives them: blue, green, red, and a byte that means nothing.
 * Quick rather than small: no line is filtered, and the lowest level of compression does the rest in a thread of its own.
 */
export async function pngOfBgrx(pixels: Buffer, width: number, height: number): Promise<Buffer> {
  const lines = Buffer.allocUnsafe((width * 3 + 1) * height)
  let to = 0
  let from = 0
  for (let y = 0; y < height; y += 1) {
    lines[to++] = 0
    for (let x = 0; x < width; x += 1, from += 4) {
      lines[to++] = pixels[from + 2] ?? 0
      lines[to++] = pixels[from + 1] ?? 0
      lines[to++] = pixels[from] ?? 0
    }
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  // 8 bits a sample, red green blue, the only methods of compression and filtering, not interlaced.
  header.set([8, 2, 0, 0, 0], 8)
  const data = await compress(lines, { level: 1, chunkSize: 1 << 18 })
  return Buffer.concat([signature, chunk('IHDR', header), chunk('IDAT', data), chunk('IEND', Buffer.alloc(0))])
}

function chunk(type: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const out = Buffer.alloc(body.length + 8)
  out.writeUInt32BE(data.length, 0)
  body.copy(out, 4)
  out.writeUInt32BE(crc32(body), body.length + 4)
  return out
}
