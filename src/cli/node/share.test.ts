import fc from 'fast-check'
import { expect, it } from 'vitest'
import { configSchema } from '../../config/schema.ts'
import { shareOf, shareOfConfig } from './share.ts'

it('shares are the whole together, as equal as can be, and one at least', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 64 }), fc.integer({ min: 1, max: 5000 }), (count, whole) => {
      const shares = Array.from({ length: count }, (_, index) => shareOf(whole, index, count))
      expect(shares.reduce((sum, one) => sum + one, 0)).toBe(Math.max(whole, count))
      expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1)
    }),
  )
})

it('what bounds a machine is divided, and what is off stays off', () => {
  const whole = configSchema.parse({ run: { limits: { boot: 5, verify: 1 } }, sandbox: { warmBoxes: 0 } })
  const [first, second] = [0, 1].map((index) => shareOfConfig(whole, index, 2))
  expect([first?.run.limits.boot, second?.run.limits.boot]).toEqual([3, 2])
  expect([first?.run.limits.verify, second?.run.limits.verify]).toEqual([1, 1])
  expect(first?.sandbox.warmBoxes).toBe(0)
  expect(first?.proxy).toEqual({ ...whole.proxy, maxInFlight: 2048, maxQueued: 4096 })
})
