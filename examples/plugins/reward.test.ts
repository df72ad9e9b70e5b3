import { ruleContract } from 'paddock-rl/testing'
import { expect, it } from 'vitest'
import { closeTo } from './reward.ts'

ruleContract('closeTo(42)', closeTo(42), { right: ['42', ' 42.0 '], wrong: ['43', '-42', '', 'a lot', '42 or 43'] })

it.each([
  ['43', 0.5],
  ['-42', 0],
  ['', 0],
  ['a lot', 0],
])('the reward of %j is %d', async (answer, value) => {
  expect(await closeTo(42)(answer)).toMatchObject({ value })
})
