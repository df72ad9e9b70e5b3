/** The pages on spans and logs are held against the code that writes them. */
import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { attribute, spanName } from '../../src/core/index.ts'

const page = (name: string) => readFile(new URL(`../../docs/reference/${name}`, import.meta.url), 'utf8')
const source = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8')

describe('spans.md', () => {
  it('names every span and every attribute, and no attribute that there is not', async () => {
    const text = await page('spans.md')
    for (const name of Object.values(spanName)) expect(text).toContain(`| \`${name} <`)
    for (const name of Object.values(attribute)) expect(text).toContain(`| \`${name}\` |`)
    const listed = [...text.matchAll(/^\| `([a-z_.]+)` \|/gm)].map(([, name]) => name)
    expect(new Set(listed)).toEqual(new Set(Object.values(attribute)))
  })
})

describe('logs.md', () => {
  it('names every room and every line', async () => {
    const text = await page('logs.md')
    const code = `${await source('src/cli/observe.ts')}${await source('src/cli/owner.ts')}`
    const lines = [...code.matchAll(/\.(?:debug|info|warn|error)\([^\n]+, '([^']+)'\)/g)].map(([, words]) => words)
    expect(lines.length).toBeGreaterThan(10)
    for (const words of lines) expect(text).toContain(`\`${words}\``)
    const rooms = [...`${code}${await source('src/cli/execute.ts')}`.matchAll(/\.room\('(\w+)'\)/g)]
    expect(rooms.length).toBeGreaterThan(3)
    for (const [, room] of rooms) expect(text).toContain(`| \`${room}\` |`)
  })
})
