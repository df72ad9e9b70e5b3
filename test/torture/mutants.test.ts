import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parts } from './mutants.ts'
import { sized } from './size.ts'

/** Each of {@link parts}, made in a copy of the sources, must turn the tests of its part red. */
const root = fileURLToPath(new URL('../..', import.meta.url))
let copy: string
beforeAll(async () => {
  copy = await mkdtemp(join(tmpdir(), 'paddock-mutants-'))
  for (const name of ['src', 'engine', 'test', 'package.json', 'tsconfig.json', 'vitest.config.ts']) {
    await cp(join(root, name), join(copy, name), {
      recursive: true,
      filter: (from) => !from.includes('node_modules'),
    })
  }
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'))
})
afterAll(async () => rm(copy, { recursive: true, force: true }))

describe.each(parts)('mutants of the $part', ({ file, tests, mutants }) => {
  it('its tests are green as it is', async () => {
    expect(await run(tests)).toMatchObject({ green: true })
  })

  it.each(
    sized(
      mutants,
      mutants.filter((_, at) => at % 4 === 0),
    ),
  )('red where it $name', async ({ from, to }) => {
    const path = join(copy, file)
    const source = await readFile(path, 'utf8')
    expect(source.split(from)).toHaveLength(2)
    await writeFile(
      path,
      source.replace(from, () => to),
    )
    try {
      const { green, output } = await run(tests)
      expect(green).toBe(false)
      // By a test that failed, not by a program that does not parse.
      expect(output).toMatch(/Tests .*\d+ failed|AssertionError|Property failed/)
    } finally {
      await writeFile(path, source)
    }
  })
})

/** Each file by itself, until one is red. */
async function run(tests: readonly string[]): Promise<{ readonly green: boolean; readonly output: string }> {
  for (const test of tests) {
    const args = ['node_modules/vitest/vitest.mjs', 'run', '--bail=1', '--testTimeout=120000', test]
    try {
      // A mutant may go round for ever: that is seen, too.
      await promisify(execFile)(process.execPath, args, {
        cwd: copy,
        env: plain(),
        timeout: 400_000,
        killSignal: 'SIGKILL',
      })
    } catch (failure) {
      const { killed, stdout } = Object(failure) as { readonly killed?: boolean; readonly stdout?: string }
      return { green: false, output: killed === true ? 'Tests 1 failed: it hung' : (stdout ?? String(failure)) }
    }
  }
  return { green: true, output: '' }
}

/** The environment without what marks a worker of the test runner. */
function plain(): NodeJS.ProcessEnv {
  const ours = Object.entries(process.env).filter(([name]) => !name.startsWith('VITEST') && name !== 'NODE_OPTIONS')
  return { ...Object.fromEntries(ours), NO_COLOR: '1' }
}
