import fc from 'fast-check'
import { expect, test } from 'vitest'
import { OutputTail } from './output.ts'

test('keeps exactly the last bytes and counts the others', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 20 })), fc.integer({ min: 1, max: 40 }), (chunks, limit) => {
      const tail = new OutputTail(limit)
      for (const chunk of chunks) tail.push(chunk)
      const all = Buffer.concat(chunks)
      expect(Buffer.from(tail.bytes())).toEqual(all.subarray(Math.max(0, all.length - limit)))
      expect(tail.droppedBytes).toBe(Math.max(0, all.length - limit))
    }),
  )
})
