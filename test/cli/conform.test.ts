import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { harnessRegistry } from '../../src/rollout/index.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { paddock } from './paddock.ts'

const hasDocker = await requireDocker()
const repeats = { repeats: 1, marked: 1, recovered: true, struck: 'main' }
const stops = { repeats: 0, afterMs: null, recovered: false, struck: 'main' }

describe('paddock conform', () => {
  const data = tempDir()

  const conform = async (...args: readonly string[]) => {
    const { code, out, err } = await paddock(['conform', ...args, '--json', '--data', data])
    if (out === '') throw new Error(err)
    return { code, harnesses: JSON.parse(out).harnesses }
  }

  it.runIf(hasDocker)(
    'sees what the reference agent does, retries too',
    async () => {
      const { code, harnesses } = await conform('reference')
      expect(harnesses).toMatchObject([
        {
          harness: 'reference',
          dialects: ['chat'],
          streams: 'never',
          tools: 1,
          parallel: true,
          echo: {
            text: { same: 2, trimmed: 0, edited: 0, lost: 0 },
            arguments: { same: 40, reserialised: 0, edited: 0, lost: 0 },
          },
          appendOnly: { turns: 39, extended: 39, causes: {} },
          retries: { limited: repeats, failed: repeats, cut: repeats },
          subagents: null,
          replay: { same: 4, calls: 4, differs: null },
          delivered: 1,
          exact: { record: 1, splice: 1 },
        },
      ])
      // The client was told to wait for a second, and did.
      expect(harnesses[0].retries.limited.afterMs).toBeGreaterThanOrEqual(900)
      expect(code).toBe(0)
    },
    400_000,
  )

  it('sees a harness that rewrites its history and never asks again, and trains only what it can', async () => {
    const { code, harnesses } = await conform('script', '--command', `'${process.execPath}' test/cli/sloppy-agent.mjs`)
    expect(harnesses).toMatchObject([
      {
        harness: 'script',
        echo: { text: { same: 0, edited: 2 }, arguments: { same: 0, reserialised: 40 } },
        appendOnly: { turns: 39, causes: { harness_rewrite: expect.any(Number) } },
        retries: { limited: stops, failed: stops, cut: stops },
        exact: { record: 1, splice: 1 },
      },
    ])
    expect(harnesses[0].appendOnly.extended).toBeLessThan(39)
    expect(code).toBe(0)
  })

  it('sees a harness that tidies its history now and then, and only there', async () => {
    const command = `'${process.execPath}' test/cli/sloppy-agent.mjs tidy`
    const { harnesses } = await conform('script', '--command', command)
    const { appendOnly, echo, exact } = harnesses[0]
    expect(echo.text).toMatchObject({ trimmed: 2, edited: 0, lost: 0 })
    // The two commands that begin with a `cd` to where the shell is, and ten of the thirty turns.
    expect(echo.arguments).toMatchObject({ edited: 12, lost: 0 })
    expect(appendOnly.turns).toBe(39)
    expect(appendOnly.turns - appendOnly.extended).toBe(12)
    expect(exact).toEqual({ record: 1, splice: 1 })
  })

  it('refuses a harness that there is not, and a command that nobody takes', async () => {
    expect(await paddock(['conform', 'nobody', '--data', data])).toMatchObject({ code: 2 })
    expect(await paddock(['conform', 'reference', '--command', 'true', '--data', data])).toMatchObject({ code: 2 })
  })

  it('has a page with the versions of today', async () => {
    const page = await readFile(join(import.meta.dirname, '../../docs/reference/conform.md'), 'utf8')
    const registry = harnessRegistry()
    const asked = registry.names.filter((name) => name !== 'shell' && name !== 'script')
    const shown = asked
      .map((name) => registry.get(name))
      .filter(({ name, place }) => place === 'box' || name === 'reference')
    expect(shown.length).toBeGreaterThan(7)
    for (const { name, version } of shown) expect(page).toContain(`| ${name} ${version} `)
  })
})
