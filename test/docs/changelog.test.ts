/** The changelog of a version that is not out yet: short enough to read, and one clause per change. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const changelog = readFileSync(fileURLToPath(new URL('../../CHANGELOG.md', import.meta.url)), 'utf8')
const [, unreleased = ''] = /^## Unreleased$(.*?)(?=^## |(?![\s\S]))/ms.exec(changelog) ?? []

it('has at most 12 kB for the unreleased version', () => {
  expect(unreleased.length).toBeGreaterThan(0)
  expect(Buffer.byteLength(unreleased)).toBeLessThanOrEqual(12_000)
})

it('has one line for each change: its area, and one sentence', () => {
  const changes = unreleased.split('\n').filter((line) => line.startsWith('- '))
  expect(changes.length).toBeGreaterThan(50)
  const odd = changes.filter(
    (line) => !/^- [A-Z][A-Za-z]+(?: [a-z]+)?: .+\.$/.test(line) || line.length > 240 || /\. [A-Z]/.test(line),
  )
  expect(odd).toEqual([])
})
