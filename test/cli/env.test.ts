/** `paddock env new` and what a person does next, with real boxes. */
import { readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Io } from '../../src/cli/io.ts'
import { runCli } from '../../src/cli/program.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { paddock } from './here.ts'
import { paddock as paddockProcess } from './paddock.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

const hasDocker = await requireDocker()

describe('paddock env new', () => {
  let directory: string
  beforeAll(async () => {
    directory = tempDir()
    const made = await paddock(['env', 'new', 'till-slips', '--into', directory])
    expect(made).toMatchObject({ code: 0, out: expect.stringContaining('paddock validate') })
  })
  const plugin = () => join(directory, 'till-slips/environment.ts')
  const tasks = () => join(directory, 'till-slips/tasks')

  it.runIf(hasDocker)('makes an environment that validates at once, under its own name', async () => {
    expect(await readFile(plugin(), 'utf8')).toMatch(/^const name = 'till-slips'$/m)
    expect(await readFile(plugin(), 'utf8')).not.toMatch(/'receipts'/)
    const proven = await paddock(['validate', tasks(), '--env', plugin(), '--json'])
    expect(proven.code).toBe(0)
    const lines = proven.out
      .trim()
      .split('\n')
      .map((line): { task: string; status: string } => JSON.parse(line))
    expect(new Map(lines.slice(0, -1).map(({ task, status }) => [task, status]))).toEqual(
      new Map([
        ['bakery', 'proven'],
        ['refund', 'proven'],
      ]),
    )
  })

  it.runIf(hasDocker)('keeps what it has proven when it is stopped, and continues from there', async () => {
    const results = join(directory, 'results.jsonl')
    const asked = ['validate', tasks(), '--env', plugin(), '--parallel', '1', '--results', results, '--json']
    const stop = new AbortController()
    const lines: string[] = []
    const out = (text: string): void => {
      lines.push(text)
      stop.abort(new Error('SIGINT received'))
    }
    const io: Io = {
      out,
      err: () => {},
      status: () => {},
      env: {},
      cwd: directory,
      colour: false,
      columns: null,
      signal: stop.signal,
    }
    expect(await runCli(asked, io)).toBe(130)
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ status: 'proven' }, { totals: { proven: 1 } }])
    expect(await readFile(results, 'utf8')).toBe(`${lines[0]}\n`)
    // Cut by a kill: it was never whole.
    await writeFile(results, `${lines[0]}\n{"task": "hal`)
    const whole = await paddock(asked)
    expect(whole.code, whole.err).toBe(0)
    expect(whole.out.split('\n')[0]).toBe(lines[0])
    expect(JSON.parse(whole.out.trim().split('\n').at(-1) ?? '')).toMatchObject({ totals: { proven: 2 } })
    const other = await paddock(['validate', tasks(), '--env', plugin(), '--results', plugin()])
    expect(other).toMatchObject({ code: 2, err: expect.stringContaining('is not a file of validation results') })
  })

  it.runIf(hasDocker)(
    'runs it with the reference agent, and rescores what was run after the verifier changed',
    async () => {
      const data = join(directory, 'data')
      const args = [tasks(), '--env', plugin(), '--task', 'bakery', '--n', '2', '--data', data, '--json']
      const ran = await paddock(['run', ...args])
      expect(ran.code, ran.err).toBe(0)
      const { runId, rollouts } = JSON.parse(ran.out).summary
      expect(rollouts).toMatchObject([{ verdict: { status: 'scored' } }, { verdict: { status: 'scored' } }])
      const source = await readFile(plugin(), 'utf8')
      // The rule now forgives everything.
      const lenient = source
        .replace("version = '1'", "version = '2'")
        .replace('(answer)', '(gold(task.data).toFixed(2))')
      await writeFile(plugin(), lenient)
      // A process knows a plugin as it was when it first loaded it.
      const again = await paddockProcess(['rescore', runId, '--env', plugin(), '--data', data, '--json'])
      expect(again.code).toBe(0)
      const outcomes = JSON.parse(again.out).rollouts as { outcome: string; after: { reward: number } }[]
      for (const { outcome, after } of outcomes) {
        expect(['changed', 'confirmed']).toContain(outcome)
        expect(after.reward).toBe(1)
      }
      const idle = await paddockProcess(['rescore', runId, '--env', plugin(), '--data', data])
      expect(idle.out).toContain('2 rollouts verified again, 0 changed, 0 confirmed by another verifier, 2 the same.')
    },
  )

  it('refuses a name or a place that cannot be', async () => {
    expect(await here('env', 'new', 'Till')).toMatch(/^2 USAGE: .*lower case/)
    expect(await here('env', 'new', 'till-slips', '--into', directory)).toMatch(/^2 USAGE: .*there already/)
    expect(await here('rescore', '--data', directory)).toMatch(/^2 USAGE: .*--all/)
    expect(await here('rescore', '--all', '--data', join(directory, 'nowhere'))).toMatch(/^2 NOT_FOUND/)
    expect(await here('validate', tasks(), '--env', './no-such-plugin.ts')).toMatch(/^2 ENVIRONMENT_INVALID/)
  })
})

/** A command in this process: its exit code and its error. */
async function here(...args: string[]): Promise<string> {
  let err = ''
  const io: Io = {
    out: () => undefined,
    err: (text) => (err += text),
    status: () => undefined,
    env: {},
    cwd: tmpdir(),
    colour: false,
    columns: null,
    signal: new AbortController().signal,
  }
  return `${await runCli(args, io)} ${err}`
}
