import { crc32, inflateSync } from 'node:zlib'

/** Red, green and blue of all pixels of a PNG, row by row, read by the specification and not by the code that wrote it. */
export function readPng(png: Buffer): { readonly width: number; readonly height: number; readonly samples: Buffer } {
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)]
  const data: Buffer[] = []
  for (let at = 8; at < png.length; at += png.readUInt32BE(at) + 12) {
    const end = at + 8 + png.readUInt32BE(at)
    if (crc32(png.subarray(at + 4, end)) !== png.readUInt32BE(end)) throw new Error(`the chunk at ${at} is damaged`)
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') data.push(png.subarray(at + 8, end))
  }
  // 8 bits a sample, colour type 2: red, green, blue.
  if (png[24] !== 8 || png[25] !== 2) throw new Error('not a PNG of 24 bits a pixel')
  const lines = inflateSync(Buffer.concat(data))
  const lineBytes = width * 3
  if (lines.length !== height * (lineBytes + 1)) throw new Error(`${lines.length} bytes for ${width}x${height}`)
  const samples = Buffer.alloc(height * lineBytes)
  for (let row = 0; row < height; row += 1) {
    const line = lines.subarray(row * (lineBytes + 1), (row + 1) * (lineBytes + 1))
    if (line[0] !== 0 && line[0] !== 2) throw new Error(`filter ${line[0]}`)
    for (let at = 0; at < lineBytes; at += 1) {
      const above = line[0] === 2 && row > 0 ? (samples[(row - 1) * lineBytes + at] ?? 0) : 0
      samples[row * lineBytes + at] = (line[at + 1] ?? 0) + above
    }
  }
  return { width, height, samples }
}
