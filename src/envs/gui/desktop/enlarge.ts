import type { Screen } from '../actions/index.ts'
import type { Region } from '../browser/index.ts'

/** A region in whole pixels that lie on the screen. */
export function roundedIn({ x, y, width, height }: Region, screen: Screen): Region {
  const [left, top] = [Math.floor(x), Math.floor(y)]
  return {
    x: left,
    y: top,
    width: Math.max(1, Math.min(screen.width - left, Math.round(width))),
    height: Math.max(1, Math.min(screen.height - top, Math.round(height))),
  }
}

/** A part of the screen, each of its pixels as a square of `times` by `times`. */
export function enlarged(pixels: Buffer, screenWidth: number, { x, y, width, height }: Region, times: number): Buffer {
  const words = new Uint32Array(pixels.buffer, pixels.byteOffset, pixels.byteLength / 4)
  const out = new Uint32Array(width * height * times * times)
  const line = new Uint32Array(width * times)
  for (let row = 0; row < height; row += 1) {
    const from = (y + row) * screenWidth + x
    for (let column = 0; column < width; column += 1) {
      line.fill(words[from + column] ?? 0, column * times, (column + 1) * times)
    }
    for (let again = 0; again < times; again += 1) out.set(line, (row * times + again) * line.length)
  }
  return Buffer.from(out.buffer)
}
