import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { packBytes, packNumbers, unpackBytes, unpackIds, unpackLogprobs } from './codec.ts'
import { applyDelta, findDelta, middleOf } from './delta.ts'
import { packMarks, unpackMarks } from './marks.ts'

const bytes = (length: number): fc.Arbitrary<Uint8Array> => fc.uint8Array({ maxLength: length })

describe('columns', () => {
  it('come back as they were, short and long, and are never much larger', () => {
    fc.assert(
      fc.property(fc.oneof(bytes(64), bytes(5000)), (value) => {
        const packed = packBytes(value)
        expect(unpackBytes(packed)).toEqual(Uint8Array.from(value))
        expect(packed.byteLength).toBeLessThanOrEqual(value.byteLength + 1)
      }),
    )
  })

  it.each([0, 1, 11, 12, 600, 4096, 4097])('hold %i ids and logprobs', (length) => {
    const ids = Int32Array.from({ length }, (_, place) => (place * 7919) % 151_936)
    const logprobs = Float32Array.from({ length }, (_, place) => (place % 5 === 0 ? Number.NaN : -place / 7))
    expect(unpackIds(packNumbers(ids))).toEqual(ids)
    expect(Buffer.from(unpackLogprobs(packNumbers(logprobs)).buffer)).toEqual(Buffer.from(logprobs.buffer))
  })

  it('take a part of a larger buffer', () => {
    const ids = Int32Array.from({ length: 100 }, (_, place) => place)
    expect(unpackIds(packNumbers(ids.subarray(40, 60)))).toEqual(ids.slice(40, 60))
  })

  it.each([
    ['an unknown codec', Uint8Array.from([9, 1])],
    ['no codec', new Uint8Array(0)],
    ['a spoiled frame', Uint8Array.from([1, 1, 2, 3])],
    ['half a number', Uint8Array.from([0, 1, 2, 3])],
  ])('are refused with %s', (_what, packed) => {
    expect(() => unpackIds(packed)).toThrow(expect.objectContaining({ code: 'STORE_CORRUPT' }) as Error)
  })
})

describe('differences', () => {
  it('give any text back from any base', () => {
    fc.assert(
      fc.property(bytes(700), bytes(700), fc.nat(700), fc.nat(700), (base, insert, from, to) => {
        const start = Math.min(from, base.length)
        const next = Buffer.concat([base.subarray(0, start), insert, base.subarray(Math.max(start, to))])
        const delta = findDelta(base, next)
        expect(Buffer.from(applyDelta(base, delta, middleOf(next, delta))).equals(next)).toBe(true)
      }),
    )
  })

  it('keep exactly what two texts share at both ends', () => {
    const [head, tail] = ['h'.repeat(1000), 't'.repeat(300)]
    const delta = findDelta(Buffer.from(`${head}${tail}`), Buffer.from(`${head}-new-${tail}`))
    expect(delta).toEqual({ prefix: 1000, suffix: 300 })
    expect(findDelta(Buffer.from('aaaa'), Buffer.from('aaaaaa'))).toEqual({ prefix: 4, suffix: 0 })
  })

  it('are refused on a base that is too short', () => {
    expect(() => applyDelta(new Uint8Array(3), { prefix: 2, suffix: 2 }, new Uint8Array(1))).toThrow(/longer/)
  })
})

describe('reply marks', () => {
  it('come back, also with steps back and beyond 2^31', () => {
    const mark = fc.record({ offset: fc.nat(2 ** 40), atMs: fc.nat(10_000_000).map((tenths) => tenths / 10) })
    fc.assert(
      fc.property(fc.array(mark), (marks) => {
        expect(unpackMarks(packMarks(marks))).toEqual(marks)
      }),
    )
  })

  it('are refused when cut short', () => {
    const packed = packMarks([{ offset: 70_000, atMs: 3 }])
    for (let length = 0; length < packed.length; length += 1) {
      expect(() => unpackMarks(packed.subarray(0, length))).toThrow(/end inside/)
    }
  })
})
