import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import type { HostContext } from '../contract.ts'
import { scriptHarness } from './preset.ts'

const stopped = new Error('all is to end')

/** The script's first line is its process. `whenGone` is called once it has ended by the signal. */
async function ended(signal: NodeJS.Signals, command: string, whenGone: (all: AbortController) => void) {
  const all = new AbortController()
  const said = new PassThrough()
  const context = {
    baseUrl: '',
    apiKey: '',
    model: '',
    prompt: '',
    signal: all.signal,
    onOutput: (_: string, chunk: Uint8Array) => said.write(chunk),
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nothing else of it is asked
  const run = scriptHarness({ command }).run(context as unknown as HostContext)
  const report = run.then(
    ({ end }) => end,
    (error: unknown) => error,
  )
  const [line] = (await once(said, 'data')) as [Buffer]
  const pid = Number(line.toString())
  process.kill(pid, signal)
  await expect.poll(() => isAlive(pid)).toBe(false)
  whenGone(all)
  return report
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const scripts: readonly [string, NodeJS.Signals, string][] = [
  ['ends by it', 'SIGTERM', 'echo $$; exec sleep 600'],
  ['ends by that of a terminal', 'SIGINT', 'echo $$; exec sleep 600'],
  ['is told of by its shell', 'SIGTERM', 'sleep 600 & echo $!; wait $!'],
]

test.each(scripts)('a script that %s, a moment before all is to end, ends with all', async (_, signal, command) => {
  expect(await ended(signal, command, (all) => all.abort(stopped))).toBe(stopped)
})

test.each(scripts)('a script that %s, and nothing else is to end, has crashed', async (_, signal, command) => {
  expect(await ended(signal, command, () => undefined)).toBe('harness_crash')
})

test('a script gets what programs need, what is named, and no other variable of this process', async () => {
  const environment = {
    PATH: process.env['PATH'],
    HOME: '/h',
    LC_ALL: 'C',
    AWS_SECRET_ACCESS_KEY: 'x',
    HF_TOKEN: 'y',
    HF_HOME: '/m',
    OPENAI_API_KEY: 'mine',
  }
  const said = new PassThrough()
  const context = { baseUrl: 'http://b', apiKey: 'pdk', model: 'm', prompt: 'p', signal: new AbortController().signal }
  const run = scriptHarness({ command: 'env', environment, env: { MODE: 'train' }, pass: ['HF_H*'] }).run(
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nothing else of it is asked
    { ...context, onOutput: (_: string, chunk: Uint8Array) => said.write(chunk) } as unknown as HostContext,
  )
  await run
  const names = String(said.read())
    .split('\n')
    .map((line) => line.split('=')[0])
    .filter((name) => !/^(?:|_|PWD|OLDPWD|SHLVL)$/.test(name ?? ''))
  expect(names.toSorted((a = '', b = '') => (a < b ? -1 : 1))).toEqual([
    'HF_HOME',
    'HOME',
    'LC_ALL',
    'MODE',
    'OPENAI_API_KEY',
    'OPENAI_BASE_URL',
    'OPENAI_MODEL',
    'PADDOCK_PROMPT',
    'PATH',
  ])
})
