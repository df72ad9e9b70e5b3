import { defineSelector } from '../selector.ts'
import { firstBy } from './order.ts'

/** The tasks that were asked for least, then those of which the fewest rows were trained, then the least attempted. */
export const leastUsedSelector = defineSelector({
  name: 'least-used',
  apiVersion: 1,
  version: '1.0.0',
  choose: (choice) => firstBy(choice, ({ asked, used, attempts }) => [asked, used, attempts]),
})
