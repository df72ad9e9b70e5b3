import { expect, test } from 'vitest'
import { Gate } from './gate.ts'

const { signal } = new AbortController()

/** The order in which people got in, and how many were in at once. */
async function queueUp(limit: number, people: number): Promise<{ order: number[]; most: number }> {
  const gate = new Gate(limit)
  const order: number[] = []
  let inside = 0
  let most = 0
  await Promise.all(
    Array.from({ length: people }, async (_, person) => {
      using _place = await gate.enter(signal)
      order.push(person)
      inside += 1
      most = Math.max(most, inside)
      await new Promise(setImmediate)
      inside -= 1
    }),
  )
  return { order, most }
}

test('lets in at most as many as its limit, in the order of asking', async () => {
  const { order, most } = await queueUp(3, 10)
  expect(most).toBe(3)
  expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
})

test('one who gives up waiting loses the turn and nobody else does', async () => {
  const gate = new Gate(1)
  const first = await gate.enter(signal)
  const leaving = new AbortController()
  const second = gate.enter(leaving.signal)
  const third = gate.enter(signal)
  leaving.abort(new Error('gone'))
  await expect(second).rejects.toThrow('gone')
  first[Symbol.dispose]()
  const place = await third
  place[Symbol.dispose]()
  await expect(gate.enter(leaving.signal)).rejects.toThrow('gone')
})

test('a place that is left twice is one place', async () => {
  const gate = new Gate(1)
  const first = await gate.enter(signal)
  first[Symbol.dispose]()
  first[Symbol.dispose]()
  await gate.enter(signal)
  const waiting = new AbortController()
  const next = gate.enter(waiting.signal)
  waiting.abort(new Error('still full'))
  await expect(next).rejects.toThrow('still full')
})

test('who is earlier in order goes first, whoever asked first', async () => {
  const gate = new Gate(1)
  const first = await gate.enter(signal, 9)
  const order: number[] = []
  const others = [5, 2, 5, 0].map(async (at) => {
    using _place = await gate.enter(signal, at)
    order.push(at)
  })
  first[Symbol.dispose]()
  await Promise.all(others)
  expect(order).toEqual([0, 2, 5, 5])
})
