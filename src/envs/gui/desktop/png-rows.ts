const base = 65_521
/** Pixels between two reductions of the sums, which stay below 2^31 meanwhile. */
const stretch = 1024

/** Both sums of Adler-32 (RFC 1950, 9) over so many bytes, begun at nothing. */
export interface Checksum {
  readonly bytes: number
  readonly low: number
  readonly high: number
}

/**
 * Whole rows of pixels (blue, green, red, a byte that means nothing) as a PNG has them before it compresses (PNG, third
 * edition, 9.2): a filter and the samples. A row like the one above it is all zeros under the filter Up; others stay as they are.
 */
export function filteredRows(pixels: Buffer, width: number): { readonly lines: Buffer; readonly checksum: Checksum } {
  const words = new Uint32Array(pixels.buffer, pixels.byteOffset, pixels.byteLength / 4)
  const rows = words.length / width
  const lineBytes = width * 3 + 1
  const lines = Buffer.alloc(rows * lineBytes)
  let [low, high] = [0, 0]
  for (let row = 0; row < rows; row += 1) {
    const at = row * width
    let to = row * lineBytes
    if (row > 0 && pixels.compare(pixels, (at - width) * 4, at * 4, at * 4, (at + width) * 4) === 0) {
      lines[to] = up
      low = (low + up) % base
      high = (high + low * lineBytes) % base
      continue
    }
    to += 1
    high = (high + low) % base
    for (let from = at; from < at + width; from += stretch) {
      const end = Math.min(from + stretch, at + width)
      for (let pixel = from; pixel < end; pixel += 1) {
        const word = words[pixel] ?? 0
        const [red, green, blue] = [(word >>> 16) & 255, (word >>> 8) & 255, word & 255]
        lines[to] = red
        lines[to + 1] = green
        lines[to + 2] = blue
        to += 3
        low += red
        high += low
        low += green
        high += low
        low += blue
        high += low
      }
      low %= base
      high %= base
    }
  }
  return { lines, checksum: { bytes: lines.length, low, high } }
}

const up = 2
