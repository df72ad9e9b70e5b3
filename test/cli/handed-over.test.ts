/** Runs that meet another owner of the data directory, whatever it is doing, and what is asked of it over the control API. */
import { spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { tempDir } from '../fixtures/temp-dir.ts'
import { paddock, serve, type Serving } from './here.ts'
import { launcher, paddock as paddockProcess } from './paddock.ts'

const task = fileURLToPath(new URL('../../examples/tasks/terminal/log-forensics', import.meta.url))
const directory = tempDir()

it('three runs at once in one data directory: one owns it, the others are handed to it, all end', async () => {
  const data = join(directory, 'three')
  const names = ['one', 'two', 'three']
  const ended = await Promise.all(
    names.map((name) => paddockProcess(['run', task, '--name', name, '--data', data, '--json'])),
  )
  expect(ended.map(({ code, err }) => [code, err])).toEqual(names.map(() => [0, '']))
  const { runs } = JSON.parse((await paddock(['list', 'runs', '--json', '--data', data])).out)
  expect(runs.map(({ name }: { name: string }) => name).toSorted()).toEqual(names.toSorted())
})

it('a run waits for an owner that is starting, and refuses an engine of its own at it', async () => {
  const data = join(directory, 'starting')
  const child = spawn(launcher, ['serve', '--json', '--data', data, '--port', '0', '--control-port', '0'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  while (child.exitCode === null && !(await isLocked(data)));
  const ended = await paddock(['run', task, '--json', '--data', data])
  expect(ended).toMatchObject({ code: 0 })
  const other = await paddock(['run', task, '--engine', 'http://127.0.0.1:9', '--data', data])
  expect(other).toMatchObject({ code: 2, err: expect.stringMatching(/USAGE: --engine .*pid \d+ owns/) })
  child.kill('SIGINT')
})

it('a shorter limit of the run holds against a longer one of the task', async () => {
  const data = join(directory, 'limits')
  const config = join(directory, 'paddock.config.mjs')
  await writeFile(config, `export default { run: { budgets: { agentMs: 1500 } } }\n`)
  const args = [
    'run',
    task,
    '--harness',
    'shell',
    '--command',
    'sleep 60',
    '--data',
    data,
    '--config',
    config,
    '--json',
    '--min-usable',
    '0',
  ]
  const { summary } = JSON.parse((await paddock(args)).out)
  expect(summary.rollouts).toMatchObject([
    // No call was made: nothing of the policy can be scored.
    { end: 'agent_timeout', calls: 0, verdict: { status: 'unscorable', reward: null } },
  ])
  expect(summary.rollouts[0].agentMs).toBeLessThan(30_000)
  expect(summary.groups).toMatchObject([{ rewards: [], settled: { state: 'settled', usable: 0 } }])
})

it('a session over the control API is a rollout that is exported with its labels; so are the labels of a run', async () => {
  const data = join(directory, 'labels')
  const owner = await serve(data)
  let session = ''
  try {
    const made = await control(owner, data, '/sessions', { labels: { student: 'ann' } })
    const opened = (await made.json()) as { session: { id: string; rolloutId: string }; key: string; baseUrl: string }
    expect(opened.session.rolloutId).not.toBeNull()
    session = opened.session.id
    const asked = await fetch(`${opened.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${opened.key}` },
      body: JSON.stringify({ model: 'x', messages: [{ role: 'user', content: 'hello' }] }),
    })
    expect(asked.status).toBe(200)
    expect((await control(owner, data, `/sessions/${opened.session.id}`, null, 'DELETE')).status).toBe(204)
    const run = await control(owner, data, '/runs', {
      tasks: task,
      labels: { student: 'bob' },
      policy: { pin: { temperature: 0.5 } },
      budgets: { agentMs: 60_000 },
      group: { deadlineMs: 3_600_000 },
      model: 'scripted-hermes',
    })
    expect(run.status).toBe(202)
    const { runId } = (await run.json()) as { runId: string }
    const ended = async () => {
      const { rollouts } = (await (await control(owner, data, `/rollouts?run=${runId}`, null, 'GET')).json()) as {
        rollouts: { end: string | null }[]
      }
      return rollouts[0]?.end ?? null
    }
    while ((await ended()) === null);
    const recorded = (await (await control(owner, data, `/runs/${runId}`, null, 'GET')).json()) as { run: object }
    expect(recorded.run).toMatchObject({
      config: {
        policy: { pin: { temperature: 0.5 } },
        budgets: { agentMs: 60_000 },
        labels: { student: 'bob' },
        group: { n: 1, over: 0, deadlineMs: 3_600_000, labels: { student: 'bob' } },
      },
    })
    for (const [body, what] of [
      [{ tasks: task, polcy: {} }, /BODY_INVALID_SHAPE/],
      [{ tasks: task, policy: { pin: { temprature: 1 } } }, /CONFIG_INVALID.*temperature/],
      [{ tasks: task, budgets: { agentMs: 'long' } }, /CONFIG_INVALID.*agentMs/],
      [{ tasks: task, group: { overs: 1 } }, /CONFIG_INVALID.*over/],
    ] as const) {
      const refused = await control(owner, data, '/runs', body)
      expect(refused.status).toBe(400)
      expect(await refused.text()).toMatch(what)
    }
    const forked = { forkedFrom: { callId: '01a1fadd-3411-7000-a8c3-fcac2b92f671', offset: 0 } }
    expect(await (await control(owner, data, '/sessions', forked)).text()).toMatch(/BODY_INVALID_SHAPE.*forkedFrom/)
    const stranger = { rolloutId: '01a1fadd-3411-7000-a8c3-fcac2b92f671' }
    expect((await control(owner, data, '/sessions', stranger)).status).toBe(404)
  } finally {
    await owner.stop()
  }
  const out = join(directory, 'out')
  const args = ['export', '--format', 'jsonl', '--include-null-verdicts', '--out', out, '--data', data, '--json']
  expect((await paddock(args)).code).toBe(0)
  const rows = (await readFile(join(out, 'rows.jsonl'), 'utf8')).trim().split('\n')
  const labels = rows.map((row) => (JSON.parse(row) as { labels: Record<string, string> }).labels)
  expect(labels).toEqual(expect.arrayContaining([expect.objectContaining({ student: 'ann' })]))
  expect(labels).toEqual(expect.arrayContaining([expect.objectContaining({ student: 'bob' })]))
  // By its session alone, which is what a harness knows of itself.
  expect((await paddock([...args, '--replace', '--session', session])).code).toBe(0)
  const own = (await readFile(join(out, 'rows.jsonl'), 'utf8')).trim().split('\n')
  expect(own.map((row) => (JSON.parse(row) as { session_id: string }).session_id)).toEqual([session])
})

async function control(
  owner: Serving,
  data: string,
  path: string,
  body: object | null,
  method = 'POST',
): Promise<Response> {
  const token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
  return fetch(`${owner.ready.control}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === null ? {} : { body: JSON.stringify(body) }),
  })
}

async function isLocked(data: string): Promise<boolean> {
  return readFile(join(data, 'lock')).then(
    () => true,
    () => false,
  )
}
