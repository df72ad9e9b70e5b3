import { describe, expect, test } from 'vitest'
import { rVes } from './index.ts'

describe('R-VES', () => {
  test.each([
    [[4], 1.25],
    [[2], 1.25],
    [[1.7], 1],
    [[1], 1],
    [[0.95], 1],
    [[0.8], 0.75],
    [[0.5], 0.75],
    [[0.3], 0.5],
    [[0.1], 0.25],
    [[0.001], 0.25],
  ])('the ratios %j fall into the tier %d', (ratios, tier) => {
    expect(rVes(ratios)?.score).toBe(Math.sqrt(tier))
  })

  test('one run in which the machine did something else counts nothing', () => {
    const steady = Array.from({ length: 30 }, (_, i) => 0.6 + (i % 3) * 0.01)
    expect(rVes([...steady, 40])?.timeRatio).toBeCloseTo(0.61, 5)
    expect(rVes([...steady, 40])?.score).toBe(Math.sqrt(0.75))
  })

  test('times that are none give nothing, which is no tier', () => {
    for (const ratios of [[], [0], [1, Number.NaN], [Infinity], [-1]]) expect(rVes(ratios)).toBeNull()
  })
})
