/** `paddock run --resume` after the program was killed, and after Ctrl-C. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, it } from 'vitest'
import { openReader, type RolloutView } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { launcher, paddock } from './paddock.ts'

const task = fileURLToPath(new URL('../../examples/tasks/terminal/log-forensics', import.meta.url))
let directory: string
/** Agents work one after the other, and none but a program's first while `held` is there. */
let config: string
let held: string
beforeAll(async () => {
  directory = tempDir()
  config = join(directory, 'paddock.config.mjs')
  held = join(directory, 'held')
  const rollouts = new URL('../../src/rollout/index.ts', import.meta.url)
  await writeFile(
    join(directory, 'patient.mjs'),
    `import { existsSync } from 'node:fs'
    import { setTimeout as wait } from 'node:timers/promises'
    import { referenceAgent } from ${JSON.stringify(rollouts.href)}
    const agent = referenceAgent()
    let begun = 0
    export default {
      ...agent,
      name: 'patient',
      async run(context) {
        begun += 1
        while (begun > 1 && existsSync(${JSON.stringify(held)})) await wait(20, undefined, { signal: context.signal })
        return agent.run(context)
      },
    }\n`,
  )
  await writeFile(config, "export default { run: { limits: { agent: 1 } }, harnesses: ['./patient.mjs'] }\n")
})

/** The rollouts of the only run of a directory; empty while there is none. */
async function rollouts(data: string): Promise<readonly RolloutView[]> {
  try {
    await using reader = await openReader(data)
    const [run] = await reader.catalogue.runs(1)
    return run === undefined ? [] : await reader.catalogue.rollouts({ runId: run.id })
  } catch {
    // The process that makes it is still at that.
    return []
  }
}

it.each(['SIGKILL', 'SIGINT'] as const)('a run that ended by %s goes on', async (signal) => {
  const data = join(directory, signal)
  const common = ['--data', data, '--config', config, '--json']
  await writeFile(held, '')
  const begin = ['run', task, '--n', '2', '--harness', 'patient']
  const child = spawn(launcher, [...begin, ...common], { stdio: ['ignore', 'pipe', 'inherit'] })
  const gone = once(child, 'close')
  child.stdout.resume()
  while (!(await rollouts(data)).some(({ end }) => end === 'completed')) expect(child.exitCode).toBeNull()
  child.kill(signal)
  const [code] = await gone
  await rm(held)
  expect(code).toBe(signal === 'SIGINT' ? 130 : null)

  const before = await rollouts(data)
  const judged = before.filter(({ verdicts }) => verdicts.length > 0)
  expect(judged).toHaveLength(1)
  const [run] = before
  const resumed = await paddock(['run', '--resume', (run?.runId ?? '').slice(-8), ...common])
  expect([resumed.code, resumed.err]).toEqual([0, expect.any(String)])
  const after = (await rollouts(data)).filter(({ end }) => end === 'completed')
  expect(after.map(({ slot }) => slot).toSorted((a, b) => a - b)).toEqual([0, 1])
  expect(after.map(({ verdicts }) => verdicts.length)).toEqual([1, 1])
  for (const one of judged) expect(after).toContainEqual(one)
  const { summary } = JSON.parse(resumed.out)
  expect(summary.groups).toMatchObject([{ settled: { state: 'settled', usable: 2 } }])

  const again = JSON.parse((await paddock(['run', '--resume', run?.runId ?? '', ...common])).out)
  expect(again.summary.groups).toEqual(summary.groups)
  expect((await rollouts(data)).filter(({ end }) => end === 'completed')).toEqual(after)
})
