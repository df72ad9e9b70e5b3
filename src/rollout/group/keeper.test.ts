import { expect, it } from 'vitest'
import { newId } from '../../core/index.ts'
import type { RoundView } from '../../trajectory/index.ts'
import { GroupKeeper } from './keeper.ts'

it('looks at a group once for all that happened while it looked before', async () => {
  const groupId = newId()
  const looks: PromiseWithResolvers<readonly RoundView[]>[] = []
  const unused = (): never => {
    throw new Error('it has no members')
  }
  const keeper = new GroupKeeper({
    store: {
      catalogue: {
        rounds: () => {
          const look = Promise.withResolvers<readonly RoundView[]>()
          looks.push(look)
          return look.promise
        },
        rollout: unused,
        settleRound: unused,
      },
      recorder: { sessions: unused, session: unused },
    },
    work: { states: unused, topUp: unused, stop: unused, compare: unused },
    onSettled: unused,
    onFailure: unused,
  })
  const other = newId()
  const asked = [keeper.advance(groupId)]
  await new Promise(setImmediate)
  for (let member = 0; member < 5; member += 1) asked.push(keeper.advance(groupId))
  // Another group, and one that nobody wants any more, are looked at by themselves.
  asked.push(keeper.advance(other), keeper.advance(groupId, true))
  for (let at = 0; at < 4; at += 1) {
    looks[at]?.resolve([])
    await new Promise(setImmediate)
  }
  expect(await Promise.all(asked)).toEqual(Array.from({ length: 8 }, () => null))
  expect(looks).toHaveLength(4)
})
