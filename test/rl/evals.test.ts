/** Evaluations over `/rl/v1` of a real `paddock serve`: by a harness of the trainer's own, and by Paddock itself. */
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { openStore } from '../../src/trajectory/index.ts'
import { paddock, serve, type Serving } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type Json, talk, task, Trainer } from './trainer.ts'

interface Member {
  readonly rollout_id: string
  readonly reward: number | null
  readonly out: string | null
}

interface Eval {
  readonly eval_id: string
  readonly state: string
  readonly version: { readonly version: number; readonly label: string } | null
  readonly result: (Json & { readonly mean: number | null; readonly mixed: boolean }) | null
  readonly tasks: readonly {
    readonly name: string
    readonly digest: string
    readonly group_id: string
    readonly state: string
    readonly members: readonly Member[]
  }[]
}

let directory: string
let data: string
let serving: Serving
let trainer: Trainer
let runs = 0
let run = ''

beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  await start()
})
afterAll(async () => {
  await serving.stop()
})
// One run at a time announces weights.
afterEach(async () => trainer.ask('POST', `/runs/${run}/close`, {}))

async function start(): Promise<void> {
  serving = await serve(data)
  trainer = new Trainer(serving, (await readFile(join(data, 'control-token'), 'utf8')).trim())
}
async function killed(): Promise<void> {
  serving.kill('SIGKILL')
  await serving.ended
  await start()
}

async function openRun(more: Json = {}): Promise<void> {
  runs += 1
  run = `run-${runs}`
  await trainer.ask('POST', '/runs', { run_id: run, ...more })
  await trainer.attach(run)
}
const evaluate = (body: Json) => trainer.ask<Eval>('POST', `/runs/${run}/evals`, body)
const refused = (body: Json) => trainer.refused('POST', `/runs/${run}/evals`, body)
const look = (id: string, waitS = 0) => trainer.ask<Eval>('GET', `/runs/${run}/evals/${id}?wait_s=${waitS}`)
const ended = async (id: string): Promise<Eval> => {
  for (;;) {
    const found = await look(id, 60)
    if (found.state !== 'running') return found
  }
}
/** Labels are of one engine, whichever run names them. */
const said = (version: number, phase: string, more: Json) => ({
  incarnation: 1,
  version,
  phase,
  ...(phase === 'live' ? { step: version > 1 ? version - 1 : null } : {}),
  label: `${run}-${version}`,
  ...more,
})
const policy = (version: number, phase: string, more: Json = {}) =>
  trainer.ask('POST', `/runs/${run}/policy`, said(version, phase, more))
/** A rollout of a group for each reward. */
const done = async (group: string, rewards: readonly (number | null | 'infra')[]): Promise<void> => {
  for (const reward of rewards) {
    const opened = await trainer.open(group)
    await talk(opened, 1)
    const verdict = { source: 'test', reward, ...(reward === null ? { reason: 'nobody knows' } : {}) }
    const end = reward === 'infra' ? { end: 'infra' } : { end: 'completed', verdict }
    await trainer.ask('POST', `/rollouts/${opened.rollout_id}/end`, end)
  }
}
const subtract = { name: 'difference', instruction: 'Take 2 from 4.' }

describe('an evaluation by a harness of the trainer', () => {
  it('has a mean with an interval, pass@k and pass^k, and what has no number apart', async () => {
    await openRun()
    const { eval_id: id, tasks } = await evaluate({ tasks: [task, subtract], split: 'test', k: 4 })
    expect(tasks).toMatchObject([
      { name: 'sum', group_id: `${id}.0`, state: 'running', members: [] },
      { name: 'difference', group_id: `${id}.1` },
    ])
    await done(`${id}.0`, [1, 0, 0, 0])
    expect(await look(id)).toMatchObject({ state: 'running', result: null, version: null })
    await done(`${id}.1`, [1, 1, null, 'infra'])
    const found = await ended(id)
    expect(found).toMatchObject({
      state: 'done',
      result: {
        mean: (0.25 + 1) / 2,
        interval: { level: 0.95 },
        tasks: 2,
        rollouts: 6,
        nulls: { no_number: 1, infra: 1 },
        mixed: false,
        overlap: [],
        pass: [
          { k: 1, pass_at: 0.625, pass_all: 0.625, tasks: 2 },
          { k: 2, pass_at: 0.75, pass_all: 0.5, tasks: 2 },
          { k: 4, pass_at: 1, pass_all: 0, tasks: 1 },
        ],
      },
    })
    expect(found.tasks[1]?.members.map(({ reward, out }) => [reward, out])).toEqual([
      [1, null],
      [1, null],
      [null, 'no_number'],
      [null, 'infra'],
    ])
  })

  it('is never claimed or trained, takes no room, and nothing of it is exported unasked', async () => {
    await openRun({ capacity: { groups: 1 } })
    const { eval_id: id } = await evaluate({ eval_id: `${run}-e`, tasks: [subtract], split: 'test' })
    await trainer.settle(run, `${run}-g`, [1], 1)
    await done(`${id}.0`, [1])
    expect((await ended(id)).result).toMatchObject({ mean: 1, nulls: {} })
    const claims = await trainer.claim(run, { max_groups: 10 })
    expect(claims.map(({ group_id: group }) => group)).toEqual([`${run}-g`])
    const asked: readonly (readonly [string, Json])[] = [
      [`/runs/${id}/attach`, { resume_step: null }],
      [`/runs/${id}/claims`, { incarnation: 1 }],
      [`/runs/${id}/groups`, { groups: [{ group_id: 'x', task, n: 1 }] }],
      [`/runs/${id}/evals`, { tasks: [task] }],
      [`/runs/${id}/close`, {}],
      [`/groups/${id}.0/rounds`, { n: 1 }],
    ]
    for (const [path, body] of asked) expect(await trainer.refused('POST', path, body)).toEqual([409, 'RUN_IS_EVAL'])
    const to = join(directory, 'export')
    const exported = await paddock(['export', '--data', data, '--format', 'jsonl', '--out', to])
    expect(exported.code, exported.err).toBe(0)
    const text = await readFile(join(to, 'rows.jsonl'), 'utf8')
    expect(text).toContain(`"${run}-g"`)
    expect(text).not.toContain(`"${id}.0"`)
  })

  it('may be of tasks that training groups refuse, and tells which ones the run trains on', async () => {
    await openRun()
    const { eval_id: id, tasks } = await evaluate({ tasks: [task, subtract], split: 'validation' })
    const groups = [{ group_id: `${run}-x`, task: { digest: tasks[0]?.digest }, n: 1 }]
    expect(await trainer.refused('POST', `/runs/${run}/groups`, { groups })).toEqual([409, 'TASK_HELD_OUT'])
    await trainer.settle(run, `${run}-g`, [1], 1)
    await done(`${id}.0`, [0])
    await done(`${id}.1`, [0])
    expect((await ended(id)).result).toMatchObject({ overlap: ['sum'], mean: 0 })
  })

  it('holds its sampling, and counts as passed what is asked for', async () => {
    await openRun()
    const { eval_id: id } = await evaluate({ tasks: [task], sampling: { temperature: 0.5 }, pass_reward: 0.4 })
    const opened = await trainer.open(`${id}.0`)
    await talk(opened, 1, { temperature: 1 })
    const token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
    const session = await fetch(`${serving.ready.control}/sessions/${opened.session_id}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    expect(JSON.stringify(await session.json())).toContain('"temperature":0.5')
    await trainer.end(opened.rollout_id, 0.4)
    expect((await ended(id)).result).toMatchObject({ mean: 0.4, interval: null, pass: [{ k: 1, pass_at: 1 }] })
  })

  it('is the same one when it is asked for again', async () => {
    await openRun()
    const body = { eval_id: `${run}-e`, tasks: [task], k: 2 }
    const first = await evaluate(body)
    expect(await evaluate(body)).toEqual(first)
    expect(await refused({ ...body, k: 3 })).toEqual([409, 'STORE_CONFLICT'])
    expect(await refused({ ...body, eval_id: run })).toEqual([409, 'STORE_CONFLICT'])
    expect(await trainer.refused('GET', `/runs/${run}/evals/${run}`)).toEqual([404, 'NOT_FOUND'])
    expect(await trainer.refused('GET', `/runs/run-1/evals/${first.eval_id}`)).toEqual([404, 'NOT_FOUND'])
    await trainer.ask('POST', `/runs/${run}/evals/${first.eval_id}/cancel`, {})
  })

  it('is refused where there is nothing to evaluate', async () => {
    await openRun()
    expect(await refused({})).toEqual([400, 'EVAL_INVALID'])
    expect(await refused({ tasks: [task], versions: { policy: 1 } })).toEqual([400, 'EVAL_INVALID'])
    expect(await refused({ tasks: [task, task] })).toEqual([400, 'EVAL_INVALID'])
    expect(await refused({ tasks: [] })).toEqual([400, 'BODY_INVALID_SHAPE'])
    expect(await refused({ tasks: [task], k: 0 })).toEqual([400, 'BODY_INVALID_SHAPE'])
    expect(await refused({ tasks: [task], version: 3 })).toEqual([409, 'EVAL_VERSION'])
    expect(await refused({ tasks: [{ digest: 'nothing' }] })).toEqual([404, 'NOT_FOUND'])
    const { eval_id: id, tasks } = await evaluate({ tasks: [task], split: 'test' })
    expect(await refused({ tasks: [{ digest: tasks[0]?.digest }], split: 'validation' })).toEqual([400, 'EVAL_INVALID'])
    await trainer.ask('POST', `/runs/${run}/evals/${id}/cancel`, {})
    await trainer.ask('POST', `/runs/${run}/close`, {})
    expect(await refused({ tasks: [task] })).toEqual([409, 'RUN_CLOSED'])
  })

  it('ends at its deadline, or when somebody cancels it, with what there is', async () => {
    await openRun()
    const late = await evaluate({ tasks: [task], k: 3, deadline_s: 0.01 })
    expect(await ended(late.eval_id)).toMatchObject({
      state: 'done',
      result: { mean: null, interval: null, pass: [], rollouts: 0, nulls: { never_began: 3 } },
    })
    const { eval_id: id } = await evaluate({ tasks: [task, subtract], k: 2 })
    await done(`${id}.0`, [1])
    const going = await trainer.open(`${id}.0`)
    const cancelled = await trainer.ask<Eval>('POST', `/runs/${run}/evals/${id}/cancel`, {})
    expect(cancelled).toMatchObject({
      state: 'cancelled',
      result: { mean: 1, rollouts: 1, nulls: { cancelled: 1, never_began: 2 } },
    })
    expect(await trainer.ask('GET', `/rollouts/${going.rollout_id}`)).toMatchObject({ end: 'cancelled' })
  })

  it('goes on after a kill of Paddock, also one of which not all was opened', async () => {
    await openRun()
    const { eval_id: id } = await evaluate({ tasks: [task, subtract] })
    await done(`${id}.0`, [1])
    serving.kill('SIGKILL')
    await serving.ended
    const half = `${run}-half`
    await using store = await openStore(data)
    await store.catalogue.putRun({ ...(await store.catalogue.run(id)), id: half })
    await store.close()
    await start()
    expect(await look(id)).toMatchObject({ state: 'running' })
    await done(`${id}.1`, [0])
    expect(await ended(id)).toMatchObject({ state: 'done', result: { mean: 0.5 } })
    while ((await look(half)).tasks.some(({ state }) => state === 'waiting'));
    await done(`${half}.0`, [1])
    await done(`${half}.1`, [1])
    expect(await ended(half)).toMatchObject({ state: 'done', result: { mean: 1 } })
  })
})

describe('weights and evaluations', () => {
  it('a push waits for those that go on, or is answered with their names', async () => {
    await openRun()
    await policy(1, 'live')
    const { eval_id: id } = await evaluate({ tasks: [task], version: 1 })
    const opened = await trainer.open(`${id}.0`)
    await talk(opened, 1)
    const answer = await trainer.send('POST', `/runs/${run}/policy`, said(2, 'pausing', { timeout_s: 1 }))
    expect(answer.status).toBe(409)
    expect(await answer.json()).toMatchObject({ error: { code: 'EVAL_RUNNING', data: { evals: [id] } } })
    const pausing = policy(2, 'pausing')
    await talk(opened, 1)
    await trainer.end(opened.rollout_id, 1)
    expect(await pausing).toMatchObject({ phase: 'pausing' })
    expect(await refused({ tasks: [task] })).toEqual([409, 'ENGINE_PAUSED'])
    await policy(2, 'live')
    expect(await ended(id)).toMatchObject({
      version: { version: 1, label: `${run}-1` },
      result: { mixed: false, mean: 1 },
    })
    expect(await refused({ tasks: [task], version: 1 })).toEqual([409, 'EVAL_VERSION'])
  })

  it('a LoRA adapter goes live behind those that go on, or is answered with their names', async () => {
    await openRun()
    await policy(1, 'live')
    const { eval_id: id } = await evaluate({ tasks: [task] })
    const opened = await trainer.open(`${id}.0`)
    const [name, path] = [`${run}-lora`, join(directory, `${run}-lora`)]
    await mkdir(path)
    const adapter = { name, path }
    const early = said(2, 'live', { adapter, timeout_s: 1 })
    expect(await trainer.refused('POST', `/runs/${run}/policy`, early)).toEqual([409, 'EVAL_RUNNING'])
    const live = policy(2, 'live', { adapter })
    await talk(opened, 1)
    await trainer.end(opened.rollout_id, 1)
    expect(await live).toMatchObject({ version: 2, replicas: [{ label: `${run}-2` }] })
    expect(await ended(id)).toMatchObject({ version: { version: 1 }, result: { mixed: false } })
    const after = await evaluate({ tasks: [task], version: 2 })
    await done(`${after.eval_id}.0`, [1])
    expect(await ended(after.eval_id)).toMatchObject({ version: { version: 2 }, result: { mixed: false } })
  })

  it('that change all the same make it mixed', async () => {
    await openRun()
    await policy(1, 'live')
    const { eval_id: id } = await evaluate({ tasks: [task], k: 2 })
    await done(`${id}.0`, [1])
    await policy(2, 'live')
    await done(`${id}.0`, [1])
    expect(await ended(id)).toMatchObject({ version: { version: 1 }, result: { mixed: true, mean: 1 } })
    const after = await evaluate({ tasks: [task] })
    await done(`${after.eval_id}.0`, [1])
    expect(await ended(after.eval_id)).toMatchObject({ version: { version: 2 }, result: { mixed: false } })
  })
})

describe('an evaluation that Paddock does', () => {
  it('is of the held-out tasks of its run; a push waits for it; and it goes on after a kill', async () => {
    const tasks = join(directory, 'tasks')
    const example = fileURLToPath(new URL('../../examples/tasks/terminal/log-forensics', import.meta.url))
    await cp(example, join(tasks, 'log-forensics'), { recursive: true })
    await cp(example, join(tasks, 'held-out'), { recursive: true })
    const toml = join(tasks, 'held-out/task.toml')
    const text = (await readFile(toml, 'utf8')).replace('paddock/log-forensics', 'paddock/held-out')
    await writeFile(toml, text.replace('split = "train"', 'split = "test"'))
    await openRun({ tasks })
    const groups = [{ group_id: `${run}-x`, task: 'held-out', n: 1 }]
    expect(await trainer.refused('POST', `/runs/${run}/groups`, { groups })).toEqual([409, 'TASK_HELD_OUT'])
    expect(await refused({ split: 'validation' })).toEqual([400, 'EVAL_INVALID'])
    expect(await refused({ tasks: ['log-forensics'], split: 'test' })).toEqual([400, 'EVAL_INVALID'])
    expect(await refused({ tasks: [task] })).toEqual([501, 'TASK_UNSUPPORTED'])
    await policy(1, 'live')
    const { eval_id: id } = await evaluate({ split: 'test', k: 2 })
    await policy(2, 'pausing')
    expect(await look(id)).toMatchObject({
      state: 'done',
      tasks: [{ name: 'held-out', members: [{ out: null }, { out: null }] }],
      result: { mixed: false, rollouts: 2, nulls: {} },
    })
    await policy(2, 'live')
    expect(await trainer.claim(run)).toEqual([])

    const again = await evaluate({ split: 'test' })
    await killed()
    expect(await ended(again.eval_id)).toMatchObject({ state: 'done', result: { rollouts: 1, nulls: {} } })
    expect(await trainer.claim(run)).toEqual([])
  })
})
