/** `paddock generate`, and running what it names, with real boxes. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { tempDir } from '../fixtures/temp-dir.ts'
import { paddock } from './paddock.ts'

const plugin = fileURLToPath(new URL('../../examples/environments/receipts/environment.ts', import.meta.url))

describe('paddock generate', () => {
  const directory = tempDir()

  it('writes tasks that it proved, which run from their file and by their name', async () => {
    const file = join(directory, 'tasks.jsonl')
    const data = join(directory, 'data')
    const made = await paddock([
      'generate',
      plugin,
      '--seed',
      '7',
      '--count',
      '1',
      '--level',
      '1..2',
      '--out',
      file,
      '--json',
    ])
    expect(made.code, made.err).toBe(0)
    expect(JSON.parse(made.out)).toMatchObject({ place: 'receipts:7:1..2', tasks: 2, leftOut: 0, problems: [] })
    const common = ['--env', plugin, '--task', 'receipts-7-l2', '--n', '1', '--data', data, '--json']
    const digests: unknown[] = []
    for (const tasks of [file, 'receipts:7:1..2']) {
      const ran = await paddock(['run', tasks, ...common])
      expect(ran.code, ran.err).toBe(0)
      const { rollouts } = JSON.parse(ran.out).summary
      expect(rollouts).toMatchObject([{ end: 'completed', verdict: { status: 'scored' } }])
      const listed = await paddock(['list', 'tasks', '--data', data, '--json'])
      digests.push(listed.out)
    }
    // The same task both times: memory has one line, with an attempt more.
    expect(digests).toHaveLength(2)
    const { tasks } = JSON.parse(String(digests[1])) as { tasks: readonly { attempts: number }[] }
    expect(tasks).toMatchObject([{ attempts: 2 }])
  })

  it('leaves boxes alone with --no-validate, and says what is wrong with a request', async () => {
    const file = join(directory, 'more.jsonl')
    const made = await paddock(['generate', 'sql', '--count', '3', '--split', 'held', '--out', file, '--no-validate'])
    expect(made).toMatchObject({ code: 0, out: expect.stringContaining('15 tasks of records:0..2:1..5') })
    const lines = (await readFile(file, 'utf8')).trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line).split)).toEqual(Array.from({ length: 15 }, () => 'held'))
    const wrong = async (...args: string[]) => (await paddock(['generate', ...args])).err
    expect(await wrong('gui', '--out', file)).toMatch(/USAGE.*gui has no generator/)
    expect(await wrong('terminal', '--out', file)).toMatch(/USAGE.*terminal has several.*break-ins, repairs/s)
    expect(await wrong('terminal', '--generator', 'records', '--out', file)).toMatch(/USAGE.*no generator records/)
    const named = ['generate', 'terminal', '--generator', 'repairs', '--count', '2', '--level', '2', '--no-validate']
    const byName = await paddock([...named, '--out', file])
    expect(byName).toMatchObject({ code: 0, out: expect.stringContaining('2 tasks of repairs:0..1:2') })
    expect(await wrong('sql', '--level', '4..9', '--out', file, '--no-validate')).toMatch(/TASK_INVALID.*level 6/)
    expect(await wrong('sql', '--out', 'tasks.json')).toMatch(/USAGE.*jsonl/)
  })
})
