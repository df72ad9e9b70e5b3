/** The code of the README is that of an example. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const file = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const readme = readFileSync(file('README.md'), 'utf8')

it('shows code as the example has it', () => {
  const [, shown = ''] = /```python\n([^`]+)```/.exec(readme) ?? []
  expect(shown).not.toBe('')
  expect(readFileSync(file('examples/train/quickstart.py'), 'utf8')).toContain(shown)
})
