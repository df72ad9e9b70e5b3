import { defineSelector } from '../selector.ts'
import { firstBy } from './order.ts'

/**
 * Tasks with a pass rate in a band, and those that nobody has a number of, the least asked first; where there are too few,
 * those nearest to the band.
 */
export const passRateSelector = defineSelector({
  name: 'pass-rate',
  apiVersion: 1,
  version: '1.0.0',
  options: { min: { default: 0.2, min: 0, max: 1 }, max: { default: 0.8, min: 0, max: 1 } },
  choose: ({ options: { min = 0.2, max = 0.8 }, ...choice }) =>
    firstBy(choice, ({ numbers, passed, asked, attempts }) => {
      const rate = passed / numbers
      const outside = numbers === 0 ? 0 : Math.max(0, min - rate, rate - max)
      return [outside, asked, attempts]
    }),
})
