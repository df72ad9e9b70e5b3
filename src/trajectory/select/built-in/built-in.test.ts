import { describe, expect, it } from 'vitest'
import type { Task } from '../../../core/index.ts'
import type { CandidateTask, Selector } from '../../rows-contract.ts'
import { chooseTasks, selectorOptions } from '../choose.ts'
import { seeded } from '../seeded.ts'
import { defineSelector } from '../selector.ts'
import { builtInSelectors } from './index.ts'

const candidate = (name: string, passed: number, numbers: number, more: Partial<CandidateTask> = {}): CandidateTask => {
  const task: Task = { digest: name, name, environment: 't', instruction: '', split: 'train', data: {}, source: '' }
  const counts = { asked: 0, attempts: numbers, nulls: 0, infra: 0, used: 0, meanReward: null }
  return { task, passed, numbers, ...counts, ...more }
}
const choose = (
  selector: Selector,
  tasks: readonly CandidateTask[],
  o: { count?: number; seed?: string; options?: Record<string, number> } = {},
) => {
  const { count = 1, seed = '', options = {} } = o
  return chooseTasks(selector, { tasks, count, random: seeded(seed), options: selectorOptions(selector, options) })
}
const named = (name: string): Selector => {
  const found = builtInSelectors.find((one) => one.name === name)
  if (found === undefined) throw new Error(`there is no ${name}`)
  return found
}
/** How often each is chosen first, over seeds. */
const shares = (name: string, tasks: readonly CandidateTask[], options: Record<string, number> = {}) => {
  const counts = new Map(tasks.map(({ task }) => [task.name, 0]))
  for (let seed = 0; seed < 400; seed += 1) {
    const [first = ''] = choose(named(name), tasks, { seed: String(seed), options })
    counts.set(first, (counts.get(first) ?? 0) + 1)
  }
  return Object.fromEntries([...counts].map(([name, count]) => [name, count / 400]))
}
const range = [
  candidate('never', 0, 20),
  candidate('seldom', 2, 20),
  candidate('even', 10, 20),
  candidate('always', 20, 20),
]

describe.each(builtInSelectors)('the selector $name', (selector) => {
  it('chooses the same for the same seed, as many as asked for, and all where there are fewer', () => {
    const tasks = [...range, candidate('new', 0, 0)]
    for (const count of [1, 3, 5, 9]) {
      const chosen = choose(selector, tasks, { count, seed: 'a' })
      expect(chosen).toEqual(choose(selector, tasks, { count, seed: 'a' }))
      expect(new Set(chosen).size).toBe(Math.min(count, 5))
    }
    const first = Array.from(
      { length: 40 },
      (_, seed) =>
        choose(
          selector,
          tasks.map((one) => candidate(one.task.name, 0, 0)),
          { seed: `${seed}` },
        )[0],
    )
    expect(new Set(first).size).toBeGreaterThan(2)
  })
})

it('pass-rate keeps to its band, tries what is new, and takes the nearest where nothing is in it', () => {
  expect(shares('pass-rate', range)).toEqual({ never: 0, seldom: 0, even: 1, always: 0 })
  expect(shares('pass-rate', range, { min: 0.05, max: 0.3 })).toMatchObject({ seldom: 1 })
  expect(shares('pass-rate', range, { min: 0.2, max: 0.3 })).toMatchObject({ seldom: 1 })
  const asked = [candidate('new', 0, 0, { asked: 3 }), candidate('even', 5, 10, { asked: 2 })]
  expect(choose(named('pass-rate'), asked)).toEqual(['even'])
})

it('thompson goes to its target, the surer the more it knows', () => {
  const share = shares('thompson', range)
  expect(share['even']).toBeGreaterThan(0.85)
  expect(share['always']).toBe(0)
  const little = shares('thompson', [candidate('even', 1, 2), candidate('new', 0, 0)])
  expect(little['new']).toBeGreaterThan(0.3)
  expect(shares('thompson', range, { target: 0 })['never']).toBeGreaterThan(0.85)
})

it('least-used takes what was asked for least, then what was trained least', () => {
  const tasks = [
    candidate('a', 0, 0, { asked: 2 }),
    candidate('b', 0, 0, { asked: 1, used: 4 }),
    candidate('c', 0, 0, { asked: 1, used: 3 }),
  ]
  expect(choose(named('least-used'), tasks, { count: 3 })).toEqual(['c', 'b', 'a'])
})

it('frontier takes what passes half of the time, and now and then what was asked for least', () => {
  const tasks = range.map((one) => (one.task.name === 'never' ? one : { ...one, asked: 9 }))
  expect(shares('frontier', tasks, { explore: 0 })).toMatchObject({ even: 1 })
  const explored = shares('frontier', tasks, { explore: 0.25 })
  expect(explored['never']).toBeGreaterThan(0.15)
  expect(explored['never']).toBeLessThan(0.35)
})

describe('a selector that chooses wrongly', () => {
  const with_ = (give: Selector['choose'], more: Partial<Selector> = {}) =>
    defineSelector({
      name: 'mine',
      apiVersion: 1,
      version: '1.0.0',
      ...(give === undefined ? {} : { choose: give }),
      ...more,
    })
  it.each([
    [
      'throws',
      () => {
        throw new Error('broken')
      },
      'it threw: Error: broken',
    ],
    ['names another task', () => ['nobody'], 'it names nobody'],
    ['names one twice', () => ['even', 'even'], 'twice'],
    ['chooses none', () => [], 'none of the tasks'],
    ['chooses too many', () => ['even', 'never'], 'was asked for 1'],
    ['returns no list', () => 'even' as never, 'a list of digests'],
  ] as const)('because it %s is named', (_how, give, said) => {
    expect(() => choose(with_(give), range)).toThrow(
      expect.objectContaining({ code: 'SELECTOR_INVALID', message: expect.stringContaining(said) as string }),
    )
  })

  it('is refused options that it does not have, or that are out of bounds', () => {
    const invalid = { code: 'CONFIG_INVALID' }
    expect(() => selectorOptions(named('thompson'), { goal: 1 })).toThrow(expect.objectContaining(invalid))
    expect(() => selectorOptions(named('thompson'), { target: 2 })).toThrow(expect.objectContaining(invalid))
    expect(selectorOptions(named('thompson'), { target: 0.2 })).toEqual({ target: 0.2, a: 1, b: 1 })
    expect(() => with_(undefined)).toThrow('`select` or `choose`')
    expect(() => with_(() => [], { options: { x: { default: 2, max: 1 } } })).toThrow('options.x.default')
  })
})
