/** The README: short enough to read, its program runs as printed, its picture is small. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const readme = await readFile(join(root, 'README.md'), 'utf8')

it('has at most 110 lines, long ones in tables alone', () => {
  const lines = readme.trimEnd().split('\n')
  expect(lines.length).toBeLessThanOrEqual(110)
  expect(lines.filter((line) => line.length > 200 && !line.startsWith('|'))).toEqual([])
})

it('shows a picture of 200 kB at most', async () => {
  const [, picture = ''] = /!\[[^\]]+\]\(([^)]+)\)/.exec(readme) ?? []
  expect((await stat(join(root, picture))).size).toBeLessThanOrEqual(200_000)
})

it('comes from an agent to rows with the program that it prints', async () => {
  const [, program = ''] = /```python\n([^`]+)```/.exec(readme) ?? []
  const [post = ''] = /^curl .*$/m.exec(readme) ?? []
  const [, shown = ''] = /```\n(1\.0 [^`]+)\n```/.exec(readme) ?? []
  const directory = await mkdtemp(join(tmpdir(), 'paddock-readme-'))
  const serving = spawn(join(root, 'paddock'), ['--data', directory, 'serve', '--port', '0', '--control-port', '0'], {
    env: { ...process.env, ENGINE_URL: '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(serving, 'exit')
  try {
    const printed: Record<string, string> = {}
    for await (const line of createInterface({ input: serving.stdout })) {
      const [, name, value] = /^ {2}export (\w+)=(.*)$/.exec(line) ?? []
      if (name !== undefined && value !== undefined) printed[name] = value
      if (line.includes('Ctrl-C ends')) break
    }
    serving.stdout.resume()
    const token = (await readFile(join(directory, 'control-token'), 'utf8')).trim()
    const env = {
      ...process.env,
      ...printed,
      PADDOCK_CONTROL_TOKEN: token,
      PYTHONPATH: join(root, 'clients/python/src'),
    }
    await promisify(execFile)('bash', ['-c', post], { cwd: root, env })
    const { stdout } = await promisify(execFile)('python3', ['-c', program], { cwd: root, env })
    const rows = stdout.trim().split('\n')
    expect(rows).toHaveLength(4)
    // As shown for the answer 4; the answer 5 has another token and no reward.
    const right = shown
      .replaceAll(/[.[\]]/g, '\\$&')
      .replaceAll('…', '.*')
      .replace('693', '693\\d*')
    const wrong = right.replace('1', '0').replace(' 19,', ' 20,')
    for (const row of rows) expect(row).toMatch(new RegExp(`^(${right}|${wrong})$`))
  } finally {
    serving.kill('SIGINT')
    await exited
    await rm(directory, { recursive: true })
  }
})
