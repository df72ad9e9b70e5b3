import { expect, it } from 'vitest'
import { KeyedTurns } from './turns.ts'

it('takes turns by key, goes on after a failure, and forgets keys that are done', async () => {
  const turns = new KeyedTurns<string>()
  const told: string[] = []
  const first = Promise.withResolvers<void>()
  const failing = turns.take('a', async () => {
    await first.promise
    told.push('a1')
    throw new Error('a1')
  })
  const after = turns.take('a', async () => told.push('a2'))
  await turns.take('b', async () => told.push('b1'))
  expect(told).toEqual(['b1'])
  // A key is forgotten behind whoever waited for its last turn.
  await new Promise(setImmediate)
  expect(turns.size).toBe(1)
  first.resolve()
  await expect(failing).rejects.toThrow('a1')
  await after
  expect(told).toEqual(['b1', 'a1', 'a2'])
  await new Promise(setImmediate)
  expect(turns.size).toBe(0)
})
