import type { Selector } from '../../rows-contract.ts'
import { frontierSelector } from './frontier.ts'
import { leastUsedSelector } from './least-used.ts'
import { passRateSelector } from './pass-rate.ts'
import { thompsonSelector } from './thompson.ts'

/** Selectors that are there without any configuration; all of them choose tasks. */
export const builtInSelectors: readonly Selector[] = [
  passRateSelector,
  thompsonSelector,
  leastUsedSelector,
  frontierSelector,
]
