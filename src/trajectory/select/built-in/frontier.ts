import { defineSelector } from '../selector.ts'
import { firstBy } from './order.ts'

/**
 * The tasks from which most can be learned: the greatest variance of passing, p(1 - p), p estimated as (passed + 1) / (numbers + 2).
 * A share `explore` of the choices goes to those that were asked for least, so that what was out of reach is tried again.
 */
export const frontierSelector = defineSelector({
  name: 'frontier',
  apiVersion: 1,
  version: '1.0.0',
  options: { explore: { default: 0.1, min: 0, max: 1 } },
  choose: ({ options: { explore = 0.1 }, ...choice }) => {
    const tried = Array.from({ length: choice.count }, () => choice.random() < explore).filter(Boolean).length
    const seldom = firstBy({ ...choice, count: tried }, ({ asked, attempts }) => [asked, attempts])
    const left = choice.tasks.filter(({ task }) => !seldom.includes(task.digest))
    const frontier = firstBy({ ...choice, tasks: left, count: choice.count - seldom.length }, (one) => {
      const p = (one.passed + 1) / (one.numbers + 2)
      return [-p * (1 - p), one.asked]
    })
    return [...seldom, ...frontier]
  },
})
