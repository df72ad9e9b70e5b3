import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { scoreOf } from './eval-score.ts'

const task = (...rewards: readonly number[]) => ({ rewards, passed: rewards.filter((one) => one >= 1).length })

/** Every way to draw `k` of a task's rollouts. */
function draws(rewards: readonly number[], k: number): readonly (readonly number[])[] {
  if (k === 0) return [[]]
  return rewards.flatMap((one, at) => draws(rewards.slice(at + 1), k - 1).map((rest) => [one, ...rest]))
}

describe('the score of an evaluation', () => {
  it('is the mean over tasks, each of its rollouts with a number', () => {
    expect(scoreOf([task(1, 1, 1, 1), task(0)], 4)).toMatchObject({ tasks: 2, rollouts: 5, mean: 0.5 })
    expect(scoreOf([task(1), task()], 1)).toMatchObject({ tasks: 1, rollouts: 1, mean: 1 })
    expect(scoreOf([task()], 1)).toEqual({ tasks: 0, rollouts: 0, mean: null, interval: null, pass: [] })
  })

  it('has pass@k and pass^k of all draws of k rollouts', () => {
    const reward = fc.constantFrom(0, 0.5, 1)
    fc.assert(
      fc.property(fc.array(fc.array(reward, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 4 }), (all) => {
        for (const { k, any, all: every, tasks } of scoreOf(
          all.map((one) => task(...one)),
          6,
        ).pass) {
          const large = all.filter(({ length }) => length >= k)
          expect(tasks).toBe(large.length)
          const share = (holds: (drawn: readonly number[]) => boolean): number =>
            large.reduce((sum, one) => {
              const drawn = draws(one, k)
              return sum + drawn.filter(holds).length / drawn.length / large.length
            }, 0)
          expect(any).toBeCloseTo(share((drawn) => drawn.includes(1)))
          expect(every).toBeCloseTo(share((drawn) => drawn.every((one) => one === 1)))
        }
      }),
    )
    expect(scoreOf([task(1, 0, 0, 0, 0, 0)], 6).pass.map(({ k }) => k)).toEqual([1, 2, 4, 6])
  })

  it('has an interval over tasks: Wilson of rewards of 0 and 1, which never closes', () => {
    const times = (count: number, ...rewards: readonly number[]) =>
      Array.from({ length: count }, () => task(...rewards))
    const interval = (scores: readonly ReturnType<typeof task>[], k: number) => scoreOf(scores, k).interval
    const around = (low: number, high: number) => ({ low: expect.closeTo(low, 3), high: expect.closeTo(high, 3) })
    expect(interval(times(10, 1), 1)).toMatchObject(around(0.7225, 1))
    expect(interval([...times(50, 1), ...times(50, 0)], 1)).toMatchObject(around(0.4038, 0.5962))
    // Tasks that are wholly solved or wholly not are worth no more than one rollout each.
    expect(interval([...times(50, 1, 1), ...times(50, 0, 0)], 2)).toMatchObject(around(0.4038, 0.5962))
    // Tasks that are all alike are worth all their rollouts.
    expect(interval(times(50, 1, 0), 2)).toMatchObject(around(0.4038, 0.5962))
    expect(interval(times(1, 1, 0, 1, 0), 4)).toMatchObject(around(0.0546, 0.9454))
  })

  it('has an interval over tasks: Student of the means of other rewards', () => {
    const means = [0.5, 0, 1, 0.5, 1]
    const found = scoreOf(
      means.map((mean) => task(mean, mean)),
      2,
    )
    expect(found.mean).toBeCloseTo(0.6)
    // 4 degrees of freedom: 2.7764 standard errors.
    expect(found.interval?.high).toBeCloseTo(0.6 + 2.7764 * Math.sqrt(0.175 / 5), 2)
    expect(scoreOf([task(0.5), task(0.25)], 1).interval?.high).toBeCloseTo(0.375 + 12.706 * 0.125, 3)
    expect(scoreOf([task(0.5)], 1).interval).toBeNull()
    expect(scoreOf([task(0.5), task(0.5)], 1).interval).toBeNull()
  })
})
