import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { InFlightSet } from './in-flight-set.ts'

describe('an in-flight set', () => {
  it('has those that came and did not go', () => {
    const calls = new InFlightSet<string>()
    for (const name of ['a', 'b', 'c']) calls.add(name)
    expect([calls.delete('a'), calls.delete('a'), calls.delete('never')]).toEqual([true, false, false])
    expect([...calls].toSorted()).toEqual(['b', 'c'])
    expect([calls.size, calls.has('a'), calls.has('c')]).toEqual([2, false, true])
    expect([calls.delete('c'), calls.delete('b'), calls.size]).toEqual([true, true, 0])
  })

  it('is gone through as it was, whoever comes and goes meanwhile', () => {
    const calls = new InFlightSet<number>()
    for (let member = 0; member < 5; member += 1) calls.add(member)
    const met: number[] = []
    for (const member of calls) {
      met.push(member)
      calls.delete(member)
      calls.add(member + 10)
    }
    expect(met.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4])
    expect(calls.size).toBe(5)
  })

  it('keeps nobody who has gone, also for the collector of young objects', () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as (how?: { readonly type: 'minor' }) => void
    const calls = new InFlightSet<readonly number[]>()
    const here: (readonly number[])[] = []
    const pass = (members: number): void => {
      for (let n = 0; n < members; n += 1) {
        const member = Array.from({ length: 128 }, () => n)
        calls.add(member)
        here.push(member)
        const first = here.length > 16 ? here.shift() : undefined
        if (first !== undefined) calls.delete(first)
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
