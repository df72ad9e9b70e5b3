/** Pictures of a screen that changes: each is the screen as it is then, however it was painted before. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { PngScreen } from '../../src/envs/gui/desktop/png.ts'
import { readPng } from './read-png.ts'

const paint = fc.record({
  first: fc.nat(219),
  count: fc.integer({ min: 1, max: 220 }),
  from: fc.nat(1100),
  colours: fc.array(fc.nat(0xff_ffff), { minLength: 1, maxLength: 3 }),
})

it('is the screen as it is, after any repaints', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 1100 }),
      fc.integer({ min: 1, max: 220 }),
      fc.array(paint, { minLength: 1, maxLength: 4 }),
      async (width, height, paints) => {
        const pixels = Buffer.alloc(width * height * 4)
        const png = new PngScreen(width, height)
        for (const { first, count, from, colours } of paints) {
          for (let row = first; row < Math.min(height, first + count); row += 1) {
            for (let column = from; column < width; column += 1) {
              pixels.writeUInt32LE(colours[column % colours.length] ?? 0, (row * width + column) * 4)
            }
          }
          const read = readPng(await png.of(pixels))
          const wanted = Buffer.alloc(width * height * 3)
          for (let at = 0; at < width * height; at += 1) {
            wanted[at * 3] = pixels[at * 4 + 2] ?? 0
            wanted[at * 3 + 1] = pixels[at * 4 + 1] ?? 0
            wanted[at * 3 + 2] = pixels[at * 4] ?? 0
          }
          expect([read.width, read.height, read.samples.compare(wanted)]).toEqual([width, height, 0])
        }
      },
    ),
    { numRuns: 30 },
  )
})
