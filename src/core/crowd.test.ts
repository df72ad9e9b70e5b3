import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { Crowd } from './crowd.ts'

describe('a crowd', () => {
  it('has those that came and did not go', () => {
    const crowd = new Crowd<string>()
    for (const name of ['a', 'b', 'c']) crowd.add(name)
    expect([crowd.delete('a'), crowd.delete('a'), crowd.delete('never')]).toEqual([true, false, false])
    expect([...crowd].toSorted()).toEqual(['b', 'c'])
    expect([crowd.size, crowd.has('a'), crowd.has('c')]).toEqual([2, false, true])
    expect([crowd.delete('c'), crowd.delete('b'), crowd.size]).toEqual([true, true, 0])
  })

  it('is gone through as it was, whoever comes and goes meanwhile', () => {
    const crowd = new Crowd<number>()
    for (let member = 0; member < 5; member += 1) crowd.add(member)
    const met: number[] = []
    for (const member of crowd) {
      met.push(member)
      crowd.delete(member)
      crowd.add(member + 10)
    }
    expect(met.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4])
    expect(crowd.size).toBe(5)
  })

  it('keeps nobody who has gone, also for the collector of young objects', () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as (how?: { readonly type: 'minor' }) => void
    const crowd = new Crowd<readonly number[]>()
    const here: (readonly number[])[] = []
    const pass = (members: number): void => {
      for (let n = 0; n < members; n += 1) {
        const member = Array.from({ length: 128 }, () => n)
        crowd.add(member)
        here.push(member)
        const first = here.length > 16 ? here.shift() : undefined
        if (first !== undefined) crowd.delete(first)
        if (n % 100 === 0) collect({ type: 'minor' })
      }
    }
    pass(1000)
    collect()
    const before = oldBytes()
    pass(20_000)
    // A kilobyte each. A Set in its place keeps all of them.
    expect(oldBytes() - before).toBeLessThan(4 * 2 ** 20)
  })
})

function oldBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space')?.space_used_size ?? 0
}
