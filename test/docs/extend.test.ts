/** `docs/extend`: every file that a page names exists, every test that it says to run is one, and each kind of plugin has a page. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const folder = join(root, 'docs/extend')
const pages = readdirSync(folder).filter((name) => name !== 'README.md')
const textOf = (page: string): string => readFileSync(join(folder, page), 'utf8')

it('the index names each page', () => {
  expect(pages.length).toBeGreaterThan(6)
  const index = textOf('README.md')
  expect(pages.filter((page) => !index.includes(`(${page})`))).toEqual([])
})

describe.each(pages)('%s', (page) => {
  const text = textOf(page)
  const commands = [...text.matchAll(/^npx vitest run (.+)$/gm)].flatMap(([, files = '']) => files.split(' '))

  it('links to files that exist', () => {
    const links = [...text.matchAll(/\]\(([^)#]+)/g)].map(([, target = '']) => target)
    expect(links.length).toBeGreaterThan(1)
    expect(links.filter((target) => !existsSync(join(folder, target)))).toEqual([])
  })

  it('names two files to copy, and tests that exist', () => {
    expect(text).toMatch(/^\*\*Copy\*\* .*\]\(.*\]\(/m)
    expect(commands.length).toBeGreaterThan(0)
    expect(commands.filter((file) => !file.endsWith('.test.ts') || !existsSync(join(root, file)))).toEqual([])
  })

  it('says what the suite checks', () => {
    expect(text).toMatch(/^## What the suites? checks?$/m)
    const [, suite] = /`(\w+Contract)\(/.exec(text) ?? []
    if (suite !== undefined) expect(readFileSync(join(root, 'src/kits/testing.ts'), 'utf8')).toContain(suite)
  })
})
