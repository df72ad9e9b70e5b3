/** The example plugins in this repository, and what a selector may not do. From the packed package: `npm run world`. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineSelector, type SelectorGroup } from 'paddock-rl/selector'
import { engineContract, exporterContract, openaiPlain, serveFixture } from 'paddock-rl/testing'
import { describe, expect, it } from 'vitest'
import { gatewayEngine } from './engine.ts'
import exporter from './exporter.ts'
import { closeTo } from './reward.ts'
import selector from './selector.ts'

exporterContract(exporter, {})
engineContract('gateway', {
  start: async () => {
    const server = await serveFixture(openaiPlain)
    return {
      adapter: gatewayEngine({ url: server.url }),
      model: openaiPlain.model,
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  },
  givesIds: false,
  splices: false,
  alive: false,
})

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

it.each([
  ['42', 1],
  ['43', 0.5],
  ['-42', 0],
  ['', 0],
  ['a lot', 0],
])('the reward of %j is %d', (answer, value) => {
  expect(closeTo(42)(answer).value).toBe(value)
})

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
