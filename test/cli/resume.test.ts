/** `paddock run --resume` with real boxes: after `kill -9`, after Ctrl-C, and by the next run in the data directory. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { launcher, paddock, serve } from './paddock.ts'

interface Listed {
  readonly id: string
  readonly runId: string
  readonly slot: number
  readonly end: string | null
  readonly work: object | null
  readonly verdict: { readonly status: string } | null
}

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paddock-resume-cli-'))
})
afterAll(() => rm(directory, { recursive: true }))

/** A task whose tests hang until `go` lies beside them. */
async function hangingTask(name: string): Promise<{ readonly path: string; go(): Promise<void> }> {
  const path = join(directory, name)
  await cp(fileURLToPath(new URL('../../examples/tasks/terminal/log-forensics', import.meta.url)), path, {
    recursive: true,
  })
  const script = '#!/bin/bash\n[ -e /tests/go ] || sleep 600\nexec python3 -I /tests/check.py\n'
  await writeFile(join(path, 'tests/test.sh'), script)
  return { path, go: () => writeFile(join(path, 'tests/go'), '') }
}

async function rolloutsIn(data: string): Promise<readonly Listed[]> {
  const listed = await paddock(['list', 'rollouts', '--json', '--data', data])
  return listed.code === 0 ? (JSON.parse(listed.out).rollouts as Listed[]) : []
}

/** Runs the task twice, until both agents are done and wait for their verdicts. */
async function untilUnverified(path: string, data: string): Promise<ChildProcess> {
  const child = spawn(launcher, ['run', path, '--n', '2', '--data', data, '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  while (child.exitCode === null) {
    const waiting = (await rolloutsIn(data)).filter(({ end, work }) => end === null && work !== null)
    if (waiting.length === 2) return child
  }
  throw new Error('the run ended')
}

it('goes on after kill -9: what the agents left is verified, and no agent works again', async () => {
  const data = join(directory, 'killed')
  const task = await hangingTask('a')
  const child = await untilUnverified(task.path, data)
  child.kill('SIGKILL')
  await once(child, 'close')
  const before = await rolloutsIn(data)
  expect((await paddock(['list', 'rollouts', '--data', data])).out.match(/unverified/g)).toHaveLength(2)
  await task.go()
  const runId = before[0]?.runId ?? ''
  const resumed = await paddock(['run', '--resume', runId, '--json', '--data', data])
  expect(resumed.code).toBe(0)
  const after = await rolloutsIn(data)
  expect(after.map(({ id }) => id)).toEqual(before.map(({ id }) => id))
  expect(after).toMatchObject([1, 2].map(() => ({ end: 'completed', verdict: { status: 'scored' } })))
  expect(JSON.parse(resumed.out).summary.rollouts).toMatchObject(
    after.map(({ id, verdict }) => ({ rolloutId: id, unverified: false, retried: false, verdict })),
  )

  const owner = await serve(data)
  try {
    const again = await paddock(['run', '--resume', runId.slice(-8), '--json', '--data', data])
    expect(JSON.parse(again.out).summary.groups).toEqual(JSON.parse(resumed.out).summary.groups)
    expect(await rolloutsIn(data)).toEqual(expect.arrayContaining([...after]))
  } finally {
    await owner.stop()
  }
  const refused = (...args: string[]) => paddock(['run', ...args, '--data', data])
  expect(await refused('--resume', runId, '--n', '3')).toMatchObject({ code: 2, err: expect.stringContaining('--n') })
  expect((await refused('--resume', before[0]?.id ?? '')).err).toMatch(/USAGE: .* is a rollout/)
  expect((await refused()).err).toMatch(/USAGE: .*--resume/)
  expect((await refused('--resume', 'ffffffff')).err).toMatch(/NOT_FOUND/)
})

it('after Ctrl-C the work is unverified, and the next run in the data directory verifies it beside its own', async () => {
  const data = join(directory, 'stopped')
  const task = await hangingTask('b')
  const child = await untilUnverified(task.path, data)
  let out = ''
  child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.kill('SIGINT')
  const [code] = (await once(child, 'close')) as [number]
  expect(code).toBe(130)
  const { summary } = JSON.parse(out)
  expect(summary).toMatchObject({ cancelled: true, rollouts: [1, 2].map(() => ({ unverified: true, verdict: null })) })
  await task.go()
  const next = await paddock(['run', task.path, '--data', data, '--json'])
  expect(next.code).toBe(0)
  const after = await rolloutsIn(data)
  expect(after).toMatchObject([1, 2, 3].map(() => ({ end: 'completed', verdict: { status: 'scored' } })))
})
