import { describe, expect, it } from 'vitest'
import { chunkOf } from './chunked.ts'

describe('chunkOf', () => {
  it('says its size in hexadecimal, whatever the number of digits', () => {
    const bytes = Buffer.alloc(70_000, 'x')
    for (const size of [1, 9, 10, 15, 16, 17, 255, 256, 4095, 4096, 65_535, 65_536, 69_999]) {
      const expected = `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`
      expect(chunkOf(bytes, 1, 1 + size)?.toString()).toBe(expected)
    }
  })

  it('is none without bytes: that would end the body', () => {
    expect(chunkOf(Buffer.from('abc'), 2, 2)).toBe(null)
  })
})
