/** The example plugins in this repository, and what a selector may not do. From the packed package: `npm run world`. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CandidateTask, defineSelector, type SelectorGroup } from 'paddock-rl/selector'
import { describe, expect, it } from 'vitest'
import curriculum from './curriculum.ts'
import selector from './selector.ts'

it.each(readdirSync(import.meta.dirname).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts')))(
  '%s has under 60 lines',
  (name) => {
    expect(
      readFileSync(join(import.meta.dirname, name), 'utf8')
        .trimEnd()
        .split('\n').length,
    ).toBeLessThan(60)
  },
)

describe('a selector', () => {
  const group = (...rewards: number[]): SelectorGroup =>
    ({ rollouts: rewards.map((reward, id) => ({ rollout: { id: String(id) }, verdict: { reward } })) }) as never

  it('keeps the best and the worst', () => {
    expect(selector.select(group(0.5, 1, 0, 0.5))).toEqual(['2', '1'])
    expect(selector.select(group(1))).toEqual(['0'])
  })

  it.each([
    [{ name: 'Best' }, '`name`'],
    [{ version: '1' }, '`version`'],
    [{ apiVersion: 2 }, '`apiVersion`'],
    [{ select: null }, '`select`'],
  ])('with %j is refused by name', (wrong, part) => {
    expect(() => defineSelector({ ...selector, ...wrong } as never)).toThrow(part)
  })
})

describe('a curriculum', () => {
  const candidate = (digest: string, size: number, passed: number, numbers: number, asked = 0): CandidateTask =>
    ({ task: { digest, data: { numbers: Array.from({ length: size }, () => 1) } }, passed, numbers, asked }) as never
  const chosen = (...tasks: CandidateTask[]) =>
    curriculum.choose({ tasks, count: 1, options: { done: 0.75, attempts: 4 }, random: () => 0 })

  it('stays at a step until each of its tasks passes, and begins again where all do', () => {
    expect(chosen(candidate('a', 2, 0, 0), candidate('b', 2, 4, 4), candidate('c', 3, 0, 0))).toEqual(['a'])
    expect(chosen(candidate('a', 2, 3, 4), candidate('b', 2, 4, 4), candidate('c', 3, 0, 0))).toEqual(['c'])
    expect(chosen(candidate('a', 2, 4, 4), candidate('c', 3, 4, 4))).toEqual(['a'])
    expect(chosen(candidate('a', 2, 0, 0, 2), candidate('b', 2, 0, 0, 1))).toEqual(['b'])
  })
})
