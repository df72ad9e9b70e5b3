import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { ByteGate } from './byte-gate.ts'

const never = new AbortController().signal

/** Who is in, in the order of entering. */
function asking(gate: ByteGate) {
  const inside: string[] = []
  const places = new Map<string, Disposable>()
  return {
    inside,
    ask: async (name: string, bytes: number, signal = never): Promise<void> => {
      places.set(name, await gate.enter(bytes, signal))
      inside.push(name)
    },
    leave: async (name: string): Promise<void> => {
      places.get(name)?.[Symbol.dispose]()
      await setImmediate()
    },
  }
}

it('lets in what there is room for, and the others in the order of asking', async () => {
  const gate = new ByteGate(10)
  const { inside, ask, leave } = asking(gate)
  const all = [ask('a', 6), ask('b', 4), ask('c', 5), ask('d', 1)]
  await setImmediate()
  expect([inside, gate.waiting]).toEqual([['a', 'b'], 2])
  await leave('b')
  // There is room for d, which waits behind c.
  expect(inside).toEqual(['a', 'b'])
  await leave('a')
  expect([inside, gate.waiting]).toEqual([['a', 'b', 'c', 'd'], 0])
  await Promise.all(all)
})

it('lets what is larger than the room in alone', async () => {
  const { inside, ask, leave } = asking(new ByteGate(10))
  const all = [ask('small', 1), ask('huge', 11), ask('next', 1)]
  await setImmediate()
  expect(inside).toEqual(['small'])
  await leave('small')
  expect(inside).toEqual(['small', 'huge'])
  await leave('huge')
  expect(inside).toEqual(['small', 'huge', 'next'])
  await Promise.all(all)
})

it('forgets who goes away, and gives room back once', async () => {
  const gate = new ByteGate(10)
  const { inside, ask, leave } = asking(gate)
  const gone = new AbortController()
  const first = ask('first', 8)
  const large = ask('large', 9, gone.signal)
  const small = ask('small', 2)
  await setImmediate()
  gone.abort(new Error('gone'))
  await expect(large).rejects.toThrow('gone')
  await setImmediate()
  expect([inside, gate.waiting]).toEqual([['first', 'small'], 0])
  await leave('first')
  await leave('first')
  const both = [ask('eight', 8), ask('one', 1)]
  await setImmediate()
  expect(inside).toEqual(['first', 'small', 'eight'])
  await leave('small')
  expect(inside).toEqual(['first', 'small', 'eight', 'one'])
  await Promise.all([first, small, ...both])
})
