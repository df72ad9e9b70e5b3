import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { parse } from 'smol-toml'
import { parseRubric } from '../../src/reward/index.ts'

const text = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8')

test('the code of the guide to environments is the code of the example', async () => {
  const guide = await text('docs/guides/your-own-environment.md')
  const example = 'examples/environments/receipts'
  const code = (await text(`${example}/environment.ts`)) + (await text(`${example}/environment.test.ts`))
  const blocks = [...guide.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block)
  expect(blocks.length).toBeGreaterThan(4)
  // The guide leaves out the condition around the suite.
  const flat = (lines: string): string => lines.replaceAll(/^ +/gm, '')
  expect(blocks.filter((block) => !flat(code).includes(flat(block)))).toEqual([])
})

test('the code of the guides to gui tasks is the code of the examples', async () => {
  const names = ['gui-app.ts', 'gui-importer.ts', 'paddock.config.ts']
  const code = (await Promise.all(names.map((name) => text(`examples/plugins/${name}`)))).join('')
  const guides = (await text('docs/guides/gui-tasks.md')) + (await text('docs/guides/gui-formats.md'))
  const blocks = [...guides.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block)
  expect(blocks.length).toBeGreaterThan(5)
  expect(blocks.filter((block) => !code.includes(block))).toEqual([])
})

test('the rubric of the guide to rewards loads, once its canaries are whole', async () => {
  const guide = await text('docs/guides/rewards.md')
  const rubric = parse(/^```toml\n([\s\S]*?)^```$/m.exec(guide)?.[1] ?? '')
  expect(() => parseRubric(rubric, 'the guide')).toThrow(/polite lacks canaries/)
  const others = [
    ['polite', 'warm'],
    ['flattery', 'no'],
    ['flattery', 'yes'],
  ].map(([item, choice]) => ({ item, answer: 'x', choice }))
  const canaries = [...(rubric['canaries'] as object[]), ...others]
  expect(parseRubric({ ...rubric, canaries }, 'the guide').items).toHaveLength(2)
})
