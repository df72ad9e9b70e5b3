/**
 * The reference is held against the code: pages that can be made are compared whole, the others must name every route
 * and event kind that exists.
 */
import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { buildProgram } from '../../src/cli/program.ts'
import { liveKinds } from '../../src/server/index.ts'
import { type RlParts, rlRoutes } from '../../src/server/rl/index.ts'
import { servedBy } from '../rl/served.ts'
import { cliPage, configKeys, configPage, errorsPage } from './render.ts'

const page = (name: string): URL => new URL(`../../docs/reference/${name}`, import.meta.url)
const source = (path: string): Promise<string> => readFile(new URL(`../../${path}`, import.meta.url), 'utf8')

function program() {
  return buildProgram({
    io: {
      out: () => undefined,
      err: () => undefined,
      status: () => undefined,
      env: {},
      cwd: '/',
      colour: false,
      columns: null,
      signal: new AbortController().signal,
    },
    run: async () => undefined,
    look: async () => undefined,
  })
}

describe('reference pages made from the code', () => {
  it('errors.md has every code', async () => {
    await expect(errorsPage()).toMatchFileSnapshot(page('errors.md').pathname)
  })
  it('config.md has every key, each with a description', async () => {
    expect(configKeys().filter((key) => key.description === '')).toEqual([])
    expect(configKeys().length).toBeGreaterThan(40)
    await expect(configPage()).toMatchFileSnapshot(page('config.md').pathname)
  })
  it('cli.md has every command and option', async () => {
    await expect(cliPage(await program())).toMatchFileSnapshot(page('cli.md').pathname)
  })
})

describe('events.md', () => {
  it('names every stored kind and every live kind', async () => {
    const text = await readFile(page('events.md'), 'utf8')
    const stored = [...(await source('src/core/event.ts')).matchAll(/kind: '(\w+)'/g)].map((match) => match[1])
    expect(stored.length).toBeGreaterThan(8)
    for (const kind of [...stored, ...Object.keys(liveKinds)]) expect(text).toContain(`| \`${kind}\` |`)
  })
})

describe('rl.md', () => {
  it('names every route of the trainer, and no other', async () => {
    const text = await readFile(page('rl.md'), 'utf8')
    const named = [...text.matchAll(/^\| `([A-Z]+ \/rl\/v1[^`]+)` \|/gm)].map((match) => match[1])
    // Nobody asks them anything here.
    const served = servedBy(rlRoutes({} as RlParts)).map(([method, path]) => `${method.toUpperCase()} /rl/v1${path}`)
    expect(served.length).toBeGreaterThan(25)
    expect(named.length).toBe(served.length)
    expect(new Set(named)).toEqual(new Set(served))
  })
})

describe('routes.md', () => {
  it('names every control route and every metric', async () => {
    const text = await readFile(page('routes.md'), 'utf8')
    const code =
      (await source('src/server/routes.ts')) +
      (await source('src/server/control.ts')) +
      (await source('src/server/engine-routes.ts')) +
      (await source('src/server/nodes/routes.ts'))
    const routes = [...code.matchAll(/\b(?:routes|app)\.(get|post|delete)\('([^']+)'/g)]
    expect(routes.length).toBeGreaterThan(12)
    for (const [, method = '', path = ''] of routes) expect(text).toContain(`\`${method.toUpperCase()} ${path}\``)
    const metrics = [...(await source('src/server/metrics.ts')).matchAll(/'(paddock_\w{2,})'/g)]
    expect(metrics.length).toBeGreaterThan(8)
    for (const [, name = ''] of metrics) expect(text).toContain(`\`${name}\``)
  })
})
