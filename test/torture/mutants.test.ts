import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { tempDir } from '../fixtures/temp-dir.ts'
import { parts } from './mutants.ts'
import { sized } from './size.ts'

/** Each of {@link parts}, made in a copy of the sources, must turn the tests of its part red. */
const root = fileURLToPath(new URL('../..', import.meta.url))
let copy: string
beforeAll(async () => {
  copy = tempDir()
  for (const name of ['src', 'engine', 'test', 'scripts', 'package.json', 'tsconfig.json', 'vitest.config.ts']) {
    await cp(join(root, name), join(copy, name), {
      recursive: true,
      filter: (from) => !from.includes('node_modules'),
    })
  }
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'))
})

/** Several parts are held by the same file, which is asked once, in one run with all others. */
it('the tests of every part are green as it is', async () => {
  const files = [...new Set(parts.flatMap(({ tests }) => tests))]
  // One that is not there would not be missed among the others.
  expect(files.filter((file) => !existsSync(join(copy, file)))).toEqual([])
  expect(await run(files, 850_000)).toEqual({ green: true, output: '' })
})

describe.each(parts)('mutants of the $part', ({ file, tests, mutants }) => {
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
      const { green, output } = await firstRed(tests)
      expect(green).toBe(false)
      // By a test that failed, not by a program that does not parse.
      expect(output).toMatch(/Tests .*\d+ failed|AssertionError|Property failed/)
    } finally {
      await writeFile(path, source)
    }
  })
})

interface Outcome {
  readonly green: boolean
  readonly output: string
}

/** Each file by itself, until one is red. */
async function firstRed(tests: readonly string[]): Promise<Outcome> {
  for (const test of tests) {
    const outcome = await run([test])
    if (!outcome.green) return outcome
  }
  return { green: true, output: '' }
}

async function run(tests: readonly string[], timeoutMs = 400_000): Promise<Outcome> {
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--bail=1', '--testTimeout=120000', ...tests]
  try {
    // A mutant may go round for ever: that is seen, too.
    await promisify(execFile)(process.execPath, args, {
      cwd: copy,
      env: plain(),
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
    })
    return { green: true, output: '' }
  } catch (failure) {
    const { killed, stdout } = Object(failure) as { readonly killed?: boolean; readonly stdout?: string }
    return { green: false, output: killed === true ? 'Tests 1 failed: it hung' : (stdout ?? String(failure)) }
  }
}

/** The environment without what marks a worker of the test runner. */
function plain(): NodeJS.ProcessEnv {
  const ours = Object.entries(process.env).filter(([name]) => !name.startsWith('VITEST') && name !== 'NODE_OPTIONS')
  return { ...Object.fromEntries(ours), NO_COLOR: '1' }
}
