import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Task } from '../../core/index.ts'
import { type Feed, placesOf, tasksOf } from './feed.ts'

const taskOf = (name: string, split = 'train'): Task => {
  return {
    digest: `digest of ${name}`,
    name,
    environment: 'terminal',
    instruction: name,
    split,
    data: {},
    source: 'test',
  }
}
const named = (count: number, split = 'train') =>
  Array.from({ length: count }, (_, at) => taskOf(`${split}-${at}`, split))

function first(count: number, feed: Feed, tasks: readonly Task[]) {
  const places = placesOf(feed, tasks, true)
  return Array.from({ length: count }, () => {
    const { set, turn } = places.next().value
    if (turn === null) throw new Error('no selector was asked for')
    return { set: set.set, n: set.n, ...turn }
  })
}

describe('a feed', () => {
  it('asks for each task of a set once in each epoch, whatever the order of the files', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.nat(1000), fc.nat(), (size, seed, turn) => {
        const tasks = named(size)
        const feed = { seed, sets: [{ set: '*', weight: 1, n: 2 }] }
        const drawn = first(3 * size, feed, tasks)
        for (const epoch of [0, 1, 2]) {
          const here = drawn.filter((one) => one.epoch === epoch)
          expect(here.map(({ task }) => task.name).toSorted()).toEqual(tasks.map(({ name }) => name).toSorted())
        }
        const turned = [...tasks.slice(turn % size), ...tasks.slice(0, turn % size)]
        expect(first(3 * size, feed, turned)).toEqual(drawn)
      }),
      { seed: 1 },
    )
  })

  it('has another order for another seed, and in each epoch', () => {
    const orders = [1, 2].flatMap((seed) => {
      const drawn = first(40, { seed, sets: [{ set: 'train', weight: 1, n: 1 }] }, named(20))
      return [drawn.slice(0, 20), drawn.slice(20)].map((part) => part.map(({ task }) => task.name).join())
    })
    expect(new Set(orders).size).toBe(4)
  })

  it('mixes its sets by weight, each with its own size of groups and its own epochs', () => {
    const tasks = [...named(5, 'easy'), ...named(3, 'hard')]
    const sets = [
      { set: 'easy', weight: 3, n: 2 },
      { set: 'hard', weight: 1, n: 8 },
    ]
    const drawn = first(4000, { seed: 3, sets }, tasks)
    const hard = drawn.filter(({ set }) => set === 'hard')
    expect(hard.length / drawn.length).toBeCloseTo(0.25, 1)
    expect(new Set(hard.map(({ n }) => n))).toEqual(new Set([8]))
    expect(hard.map(({ epoch }) => epoch)).toEqual(hard.map((_, at) => Math.floor(at / 3)))
  })

  it('leaves out of * what is not for training', () => {
    const tasks = [taskOf('a'), taskOf('b', 'test'), taskOf('c', 'validation')]
    expect(tasksOf({ set: '*' }, tasks, true).map(({ name }) => name)).toEqual(['a'])
    expect(tasksOf({ set: '*' }, tasks, false)).toHaveLength(3)
  })
})
