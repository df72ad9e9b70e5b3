import fc from 'fast-check'
import { expect, test } from 'vitest'
import { WordTable } from './word-table.ts'

test('numbers words as a map would, in the order of first sight', () => {
  const word = fc.oneof(fc.string({ maxLength: 3 }), fc.string({ unit: 'grapheme', maxLength: 300 }))
  fc.assert(
    fc.property(fc.array(word, { maxLength: 200 }), (words) => {
      const table = new WordTable()
      const map = new Map<string, number>()
      for (const one of words) {
        if (!map.has(one)) map.set(one, map.size)
        const text = `<${one}>`
        expect(table.numberOf(text, 1, 1 + one.length)).toBe(map.get(one))
      }
      expect(table.size).toBe(map.size)
    }),
    { numRuns: 200, seed: 41 },
  )
})

test('keeps its numbers while it grows', () => {
  const table = new WordTable()
  const words = Array.from({ length: 100_000 }, (_, i) => `w${i.toString(36)}`)
  expect(words.every((one, i) => table.numberOf(one, 0, one.length) === i)).toBe(true)
  expect(words.every((one, i) => table.numberOf(one, 0, one.length) === i)).toBe(true)
})

// Pairs with equal 32-bit FNV-1a.
test.each([
  ['costarring', 'liquid'],
  ['declinate', 'macallums'],
  ['altarage', 'zinke'],
])('tells %s from %s', (one, other) => {
  const table = new WordTable()
  expect([one, other, one, other].map((word) => table.numberOf(word, 0, word.length))).toEqual([0, 1, 0, 1])
})
