/** `scripts/lane.ts` over lanes of this test's own, in a folder of its own. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { keepSection } from '../../scripts/keep-section.ts'
import { laneNames, laneOf } from '../../scripts/lanes.ts'
import { tempDir } from '../fixtures/temp-dir.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))
const passes = `import { it } from 'vitest'\nit('passes', () => undefined)\n`
const fails = `import { it } from 'vitest'\nit('fails', () => { throw new Error('on purpose') })\n`
const doesNotLoad = `throw new Error('on purpose')\n`
const hangs = `import { it } from 'vitest'\nit('hangs', () => new Promise(() => setInterval(() => undefined, 1000)), 600_000)\n`

/** Runs the lane `sample` that has these files. */
async function lane(
  files: Readonly<Record<string, string>>,
  json: unknown,
  args: readonly string[] = [],
): Promise<{ readonly code: unknown; readonly out: string; readonly at: string }> {
  const at = tempDir()
  await mkdir(join(at, 'test/sample'), { recursive: true })
  await symlink(join(repository, 'node_modules'), join(at, 'node_modules'))
  for (const config of ['vitest.lane.config.ts', 'vitest.config.ts']) {
    await writeFile(join(at, config), 'export default {}\n')
  }
  await writeFile(join(at, 'test/sample/lane.json'), JSON.stringify(json))
  for (const [name, text] of Object.entries(files)) {
    const path = join(at, 'test/sample', name)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, text)
  }
  const child = spawn(process.execPath, [join(repository, 'scripts/lane.ts'), 'sample', ...args], {
    cwd: at,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, VITEST: '', NO_COLOR: '1', PADDOCK_FAILURES: join(at, 'failures') },
  })
  let out = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (out += chunk.toString()))
  const [code] = await once(child, 'close')
  return { code, out, at }
}

it('has every test file in exactly one place: ./check, or one lane', async () => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(repository, 'node_modules/vitest/vitest.mjs'), 'list', '--filesOnly', '--json'],
    { cwd: repository, env: { ...process.env, VITEST: '', PADDOCK_CHECK: '1' }, maxBuffer: 16_000_000 },
  )
  const checked = (JSON.parse(stdout) as { readonly file: string }[]).map(({ file }) => relative(repository, file))
  const lanes = laneNames(repository).map((name) => laneOf(name, repository))
  const places = [...checked, ...lanes.flatMap(({ files, long }) => [...files, ...long])]
  const all = globSync('**/*.test.ts', { cwd: repository, exclude: ['**/node_modules', 'dist', '.git'] })
  expect(places.toSorted()).toEqual(all.toSorted())
})

it('has an npm script and a line of Debian packages for each lane', async () => {
  const { scripts } = JSON.parse(await readFile(join(repository, 'package.json'), 'utf8')) as {
    readonly scripts: Readonly<Record<string, string>>
  }
  const packages = await readFile(join(repository, 'scripts/machine'), 'utf8')
  for (const name of laneNames(repository)) {
    expect(Object.keys(scripts)).toContain(name)
    expect(packages).toMatch(new RegExp(`^ +([\\w-]+ \\| )*${name}( \\| [\\w-]+)*\\) echo`, 'm'))
  }
})

it('runs files beside the sources, by globs, as many in one vitest as it says', async () => {
  const json = { limitMinutes: 10, from: '.', together: 2, files: ['src/*/a.test.ts', 'src/two/b.test.ts'] }
  const files = {
    '../../src/one/a.test.ts': passes,
    '../../src/two/a.test.ts': fails,
    '../../src/two/b.test.ts': passes,
  }
  const { code, out } = await lane(files, json)
  expect(code, out).toBe(1)
  expect(out).toContain('| src/one/a.test.ts and 1 more | FAILED: 1 passed, 1 failed')
  expect(out).toContain('| src/two/b.test.ts | passed: 1 passed')
  expect(lastLine(out)).toBe('2 passed, 1 failed, 0 skipped')
  const none = await lane(files, json, ['--at-most', '0'])
  expect(none.code, none.out).toBe(0)
  expect(none.out).toContain('| src/one/a.test.ts, src/two/a.test.ts | not run (time)')
})

const lastLine = (out: string): string | undefined => out.trimEnd().split('\n').at(-1)

it('runs the files in the order of its list, and ends with one line of counts', async () => {
  const files = { 'a.test.ts': passes, 'b.test.ts': passes, 'c.test.ts': passes }
  const { code, out } = await lane(files, { limitMinutes: 10, files: ['b.test.ts', 'a.test.ts'], long: ['c.test.ts'] })
  expect(code, out).toBe(0)
  expect(out.indexOf('| b.test.ts | passed')).toBeGreaterThan(0)
  expect(out.indexOf('| a.test.ts | passed')).toBeGreaterThan(out.indexOf('| b.test.ts | passed'))
  expect(out).not.toContain('c.test.ts')
  expect(lastLine(out)).toBe('2 passed, 0 failed, 0 skipped')
})

it('takes no longer than it is given, and no longer than its own limit', async () => {
  const files = { 'a.test.ts': passes }
  const none = await lane(files, { limitMinutes: 10, files: ['a.test.ts'] }, ['--at-most', '0'])
  expect(none.code, none.out).toBe(0)
  expect(none.out).toContain('| a.test.ts | not run (time)')
  const own = await lane(files, { limitMinutes: 0.000001, files: ['a.test.ts'] }, ['--at-most', '10', '--minutes', '0'])
  expect(own.out).toContain('| a.test.ts | not run (time)')
})

it('--long runs the rest as well, without a limit, and writes its table', async () => {
  const files = { 'a.test.ts': passes, 'c.test.ts': `${passes}it.skip('later', () => undefined)\n` }
  const json = { limitMinutes: 0.000001, files: ['a.test.ts'], long: ['c.test.ts'] }
  const { code, out, at } = await lane(files, json, ['--long', '--table', 'table.md'])
  expect(code, out).toBe(0)
  const kept = await readFile(join(at, 'table.md'), 'utf8')
  expect(kept).toMatch(/\| c\.test\.ts \| passed: 1 passed, 0 failed, 1 skipped/)
  expect(lastLine(out)).toBe('2 passed, 0 failed, 1 skipped')
})

it('keeps the last table of each long run, beside those of others', async () => {
  const at = tempDir()
  const file = join(at, 'table.md')
  keepSection(file, 'one', '| 1 |\n')
  keepSection(file, 'two', '| 2 |\n')
  keepSection(file, 'one', '| 3 |\n')
  const [head, ...sections] = (await readFile(file, 'utf8')).split('## ')
  expect(head).toContain('npm run torture:long')
  expect(sections).toEqual([
    expect.stringMatching(/^one\n\n\d{4}-\d\d-\d\d, commit \w+(-dirty)?\.\n\n\| 3 \|\n\n$/),
    expect.stringMatching(/^two\n\n\S+, commit \S+\.\n\n\| 2 \|\n$/),
  ])
})

it('goes on after a file that fails or does not load, counts both, and ends red', async () => {
  const files = { 'a.test.ts': fails, 'b.test.ts': doesNotLoad, 'c.test.ts': passes }
  const { code, out, at } = await lane(files, { limitMinutes: 10, files: Object.keys(files) })
  expect(code, out).toBe(1)
  expect(lastLine(out)).toBe('1 passed, 2 failed, 0 skipped')
  const told = await readFile(join(at, 'failures'), 'utf8')
  expect(told.match(/^\S.*$/gm)).toEqual([
    expect.stringMatching(/a\.test\.ts > \S/),
    expect.stringMatching(/b\.test\.ts$/),
  ])
})

it('starts nothing after its limit, names what did not run, and is not red for it', async () => {
  const { code, out } = await lane({ 'a.test.ts': fails }, { limitMinutes: 10, files: ['a.test.ts'] }, [
    '--minutes',
    '0',
  ])
  expect(code, out).toBe(0)
  expect(out).toContain('| a.test.ts | not run (time) |')
  expect(lastLine(out)).toBe('0 passed, 0 failed, 0 skipped')
})

it('stops a file that hangs beyond the grace, and that is a failure', async () => {
  const json = { limitMinutes: 0.05, files: ['a.test.ts'] }
  const { code, out } = await lane({ 'a.test.ts': hangs }, json, ['--grace', '0'])
  expect(code, out).toBe(1)
  expect(out).toContain('| a.test.ts | stopped (time)')
  expect(lastLine(out)).toBe('0 passed, 1 failed, 0 skipped')
})

/** Passes once the other file has begun too, and ends when it has met it. */
const meets = (own: string, other: string) => `import { existsSync, watch, writeFileSync } from 'node:fs'
import { it } from 'vitest'
it('meets ${other}', () => new Promise((resolve) => {
  const look = () => existsSync('${other}') && resolve(undefined)
  watch('.', look)
  writeFileSync('${own}', '')
  console.log('${own} began')
  look()
}), 600_000)
`

/** Writes down when it begins and ends, and takes its time between them. */
const notes = (name: string) => `import { appendFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { it } from 'vitest'
it('notes', async () => {
  appendFileSync('notes', 'begin ${name}\\n')
  await setTimeout(1000)
  appendFileSync('notes', 'end ${name}\\n')
})
`

it('runs as many files beside each other as it says, and shows what each printed in one piece', async () => {
  const files = { 'a.test.ts': meets('here-a', 'here-b'), 'b.test.ts': meets('here-b', 'here-a') }
  const json = { limitMinutes: 10, files: Object.keys(files), atOnce: 2 }
  const { code, out } = await lane(files, json)
  expect(code, out).toBe(0)
  expect(out.indexOf('| b.test.ts | passed')).toBeGreaterThan(out.indexOf('| a.test.ts | passed'))
  const [first, second] = ['here-a began', 'here-b began'].map((said) => out.indexOf(said)).toSorted((a, b) => a - b)
  // The counts of a file stand between what it said and what the next one said.
  expect(out.slice(first, second)).toMatch(/Tests +1 passed/)
  expect(lastLine(out)).toBe('2 passed, 0 failed, 0 skipped')
})

it('runs a file beside no other that is to be alone', async () => {
  const files = { 'a.test.ts': notes('a'), 'b.test.ts': notes('b'), 'c.test.ts': notes('c') }
  const json = { limitMinutes: 10, files: Object.keys(files), atOnce: 2, alone: ['b.test.ts'] }
  const { code, out, at } = await lane(files, json)
  expect(code, out).toBe(0)
  const noted = (await readFile(join(at, 'notes'), 'utf8')).trim().split('\n')
  expect(noted).toEqual(['begin a', 'end a', 'begin b', 'end b', 'begin c', 'end c'])
})

it('stops every file that hangs beyond the grace', async () => {
  const json = { limitMinutes: 0.05, files: ['a.test.ts', 'b.test.ts'], atOnce: 2 }
  const { code, out } = await lane({ 'a.test.ts': hangs, 'b.test.ts': hangs }, json, ['--grace', '0'])
  expect(code, out).toBe(1)
  expect(lastLine(out)).toBe('0 passed, 2 failed, 0 skipped')
})

it.each([
  ['a file without a place in the list', { limitMinutes: 1, files: [] }, /a\.test\.ts is not in/],
  [
    'a name without a file',
    { limitMinutes: 1, files: ['a.test.ts', 'b.test.ts'] },
    /b\.test\.ts, which does not exist/,
  ],
  ['a name twice', { limitMinutes: 1, files: ['a.test.ts'], long: ['a.test.ts'] }, /a\.test\.ts twice/],
  ['a misspelt key', { limitMinutes: 1, files: ['a.test.ts'], lng: [] }, /unknown key lng/],
  ['a limit that is none', { limitMinutes: 0, files: ['a.test.ts'] }, /limitMinutes/],
  ['another root', { limitMinutes: 1, from: 'src', files: ['a.test.ts'] }, /from is "\."/],
  ['a glob without a file', { limitMinutes: 1, from: '.', files: ['src/**'] }, /src\/\*\*, which does not exist/],
  ['half a file', { limitMinutes: 1, files: ['a.test.ts'], atOnce: 1.5 }, /atOnce is not a whole number/],
  ['alone what is not in the lane', { limitMinutes: 1, files: ['a.test.ts'], alone: ['b.test.ts'] }, /alone names b/],
])('refuses %s before anything runs', async (_, json, message) => {
  const { code, out } = await lane({ 'a.test.ts': passes }, json)
  expect(code).toBe(2)
  expect(out).toMatch(message)
  expect(out).not.toContain('passed')
})
