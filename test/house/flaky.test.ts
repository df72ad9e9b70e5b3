/** `scripts/flaky` on sample files in a scratch repository. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, it } from 'vitest'

const repository = fileURLToPath(new URL('../..', import.meta.url))
const passes = `import { it } from 'vitest'\nit('passes', () => undefined)\n`
/** Green at first, then red. */
const fails = `import { existsSync, writeFileSync } from 'node:fs'
import { it } from 'vitest'
it('fails the second time', () => {
  if (existsSync('ran')) throw new Error('on purpose')
  writeFileSync('ran', '')
})
`

const folders: string[] = []
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true })
})

async function sample(files: Readonly<Record<string, string>>): Promise<string> {
  const at = await mkdtemp(join(tmpdir(), 'paddock-flaky-test-'))
  folders.push(at)
  await mkdir(join(at, 'node_modules'))
  await symlink(join(repository, 'node_modules/vitest'), join(at, 'node_modules/vitest'))
  for (const [name, body] of Object.entries(files)) await writeFile(join(at, name), body)
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], { cwd: at })
  git('init', '--quiet')
  git('add', 'a.test.ts')
  git('commit', '--quiet', '--message', 'sample')
  return at
}

async function flaky(
  at: string,
  ...args: readonly string[]
): Promise<{ readonly code: unknown; readonly out: string }> {
  const child = spawn(process.execPath, [join(repository, 'scripts/flaky.ts'), ...args], {
    cwd: at,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, VITEST: '', NO_COLOR: '1' },
  })
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code, out: out + err }
}

it('runs each file the given number of times, prints red runs, and ends its busy loops', async () => {
  const at = await sample({ 'a.test.ts': passes, 'b.test.ts': fails })
  const { code, out } = await flaky(at, 'a.test.ts', 'b.test.ts', '--times', '2', '--busy', '1')
  expect(code, out).toBe(1)
  expect(out).toContain('on purpose')
  expect(out).toMatch(/\| a\.test\.ts \| 2 \| 0 \| \d+ s \|\n\| b\.test\.ts \| 2 \| 1 \|/)
  expect(out.trimEnd().split('\n').at(-1)).toBe('4 runs, 1 red')
  expect(programsIn(at)).toEqual([])
})

it('continues an earlier call', async () => {
  const at = await sample({ 'a.test.ts': passes })
  const none = await flaky(at, 'a.test.ts', '--times', '2', '--busy', '0', '--minutes', '0')
  expect(none).toEqual({ code: 3, out: expect.stringContaining('0 runs, 0 red') })
  await flaky(at, 'a.test.ts', '--times', '1', '--busy', '0')
  const { code, out } = await flaky(at, 'a.test.ts', '--times', '2', '--busy', '0')
  expect(code, out).toBe(0)
  expect(out).not.toContain('1/2')
  expect(out).toContain('2/2 green')
})

it('lists ten test files', async () => {
  const named = Object.keys(JSON.parse(await readFile(join(repository, 'test/flaky.json'), 'utf8')))
  expect(named).toHaveLength(10)
  for (const file of named) expect(readFileSync(join(repository, file), 'utf8')).toContain("from 'vitest'")
  const { code, out } = await flaky(repository, 'nothing.test.ts')
  expect([code, out]).toEqual([2, 'flaky: There is no file nothing.test.ts.\n'])
})

/** Processes that work in a folder. */
function programsIn(folder: string): readonly string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`) === folder
    } catch {
      // It ended.
      return false
    }
  })
}
