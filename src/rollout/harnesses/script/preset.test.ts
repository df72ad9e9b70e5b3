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
