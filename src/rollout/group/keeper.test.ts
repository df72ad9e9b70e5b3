import { afterEach, expect, it, vi } from 'vitest'
import { newId } from '../../core/index.ts'
import type { RoundView } from '../../trajectory/index.ts'
import { GroupKeeper } from './keeper.ts'

afterEach(() => vi.useRealTimers())

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

it('looks at a large group for a tenth of the time, however many members end, and at once for who wants no more of it', async () => {
  vi.useFakeTimers()
  const groupId = newId()
  let looks = 0
  const unused = (): never => {
    throw new Error('it has no members')
  }
  const keeper = new GroupKeeper({
    store: {
      catalogue: {
        rounds: async () => {
          looks += 1
          await new Promise((resolve) => setTimeout(resolve, 100))
          return []
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
  const asked: Promise<unknown>[] = []
  for (let member = 0; member < 495; member += 1) {
    asked.push(keeper.advance(groupId))
    await vi.advanceTimersByTimeAsync(10)
  }
  expect(looks).toBe(5)
  asked.push(keeper.advance(groupId, true))
  await vi.advanceTimersByTimeAsync(200)
  expect(looks).toBe(7)
  asked.push(keeper.advance(groupId))
  keeper.close()
  await vi.advanceTimersByTimeAsync(100)
  expect(await Promise.all(asked)).toHaveLength(497)
})

it('ends at its deadline what only waits for a verdict, and nothing that is carried into the next round', async () => {
  const groupId = newId()
  const unused = (): never => {
    throw new Error('nobody asks for it')
  }
  const slots = [0, 1, 2].map((slot) => ({ slot, jobId: newId(), key: null }))
  const spec = {
    n: 3,
    over: 0,
    topUp: 0,
    minUsable: 0,
    carry: true,
    deadlineMs: 10,
    stopWhen: { kind: 'all' },
    onCut: {},
  }
  const round = { groupId, runId: newId(), round: 0, spec, slots, ageMs: 20, settled: null } as unknown as RoundView
  const stopped: number[] = []
  const keeper = new GroupKeeper({
    store: {
      catalogue: { rounds: async () => [round], rollout: unused, settleRound: async (settled) => settled },
      recorder: { sessions: unused, session: unused },
    },
    work: {
      states: async () =>
        slots.map(({ slot }) => ({
          slot,
          rollout: null,
          over: slot === 0,
          verifying: slot === 1,
          verdictFromOutside: false,
        })),
      topUp: unused,
      stop: async (of, why) => void stopped.push(...of.slots.map(({ slot }) => (why === 'deadline' ? slot : -1))),
      compare: async () => {},
    },
    onSettled: () => {},
    onFailure: unused,
  })
  expect(await keeper.advance(groupId)).toMatchObject({ stoppedBy: 'deadline', carried: expect.anything() })
  expect(stopped).toEqual([1])
  keeper.close()
})
