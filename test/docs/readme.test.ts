/** The README says what is there: its code is that of an example, its links lead somewhere. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const file = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const readme = readFileSync(file('README.md'), 'utf8')

it('shows code as the example has it', () => {
  const [, shown = ''] = /```python\n([^`]+)```/.exec(readme) ?? []
  expect(shown).not.toBe('')
  expect(readFileSync(file('examples/train/quickstart.py'), 'utf8')).toContain(shown)
})

it('leads to pages that are there', () => {
  const links = [...readme.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map(([, path = '']) => path)
  expect(links.length).toBeGreaterThan(30)
  expect(links.filter((path) => !existsSync(file(path)))).toEqual([])
})
