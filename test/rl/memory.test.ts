/** What is remembered of tasks: over `/rl/v1/tasks` and `paddock list tasks`, of a real `paddock serve` that is killed. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { paddock, serve, type Serving } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type Json, talk, Trainer } from './trainer.ts'

let directory: string
let data: string
let serving: Serving
let trainer: Trainer
beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  await start()
})
afterAll(async () => {
  await serving.stop()
})

async function start(): Promise<void> {
  serving = await serve(data)
  trainer = new Trainer(serving, (await readFile(join(data, 'control-token'), 'utf8')).trim())
}

interface Line {
  readonly name: string
  readonly pass_rate: number | null
  readonly attempts: number
  readonly nulls: number
  readonly mean_tokens: number | null
  readonly mean_turns: number | null
  readonly harness: string | null
  readonly version: { readonly version: number; readonly label: string | null } | null
  readonly uses: { readonly used: number; readonly no_signal: number }
}

const tasks = async (query: string) =>
  (await trainer.ask<{ tasks: readonly Line[]; next: string | null }>('GET', `/tasks?${query}`)).tasks

/** A settled group of a task, one member for each reward. */
async function settle(run: string, group: string, named: string, rewards: readonly (number | null)[]): Promise<void> {
  const task = { name: named, instruction: `Do ${named}.` }
  await trainer.ask('POST', `/runs/${run}/groups`, { groups: [{ group_id: group, task, n: rewards.length }] })
  for (const reward of rewards) {
    const opened = await trainer.open(group)
    await talk(opened, 2)
    const verdict = reward === null ? { source: 'test', reward, reason: 'unknown' } : { source: 'test', reward }
    await trainer.ask('POST', `/rollouts/${opened.rollout_id}/end`, { end: 'completed', verdict })
  }
}

it('remembers attempts as they settle and rows as they are used, over a kill, and finds tasks by them', async () => {
  await trainer.ask('POST', '/runs', { run_id: 'run' })
  await trainer.attach('run')
  await settle('run', 'a', 'hard', [0, 0, 0, null])
  await settle('run', 'b', 'even', [1, 0])
  const claims = await trainer.claim('run', { max_groups: 2, wait_s: 60 })
  for (const { group_id: group, claim_id: claim } of claims) {
    const { rows } = await trainer.rows(group, claim)
    const outcome = group === 'a' ? 'no_signal' : 'used'
    const usable = rows.filter(({ usable: may }) => may)
    await trainer.dispose(
      'run',
      usable.map((row) => ({ row: row.row_id, step: 1, outcome })),
    )
  }
  const remembered = await tasks('run=run')
  expect(remembered).toMatchObject([
    { name: 'hard', attempts: 4, pass_rate: 0, nulls: 1, mean_turns: 2, uses: { used: 0, no_signal: 3 } },
    { name: 'even', attempts: 2, pass_rate: 0.5, nulls: 0, mean_turns: 2, uses: { used: 2, no_signal: 0 } },
  ])
  expect(remembered[0]?.mean_tokens).toBeGreaterThan(0)

  serving.kill('SIGKILL')
  await serving.ended
  await start()
  expect(await tasks('run=run')).toEqual(remembered)
  expect((await tasks('pass_rate=0.2..0.8')).map(({ name }) => name)).toEqual(['even'])
  expect((await tasks('uses=..0&attempts=3..')).map(({ name }) => name)).toEqual(['hard'])
  expect((await tasks('unused_since=2020-01-01')).map(({ name }) => name)).toEqual(['hard'])
  expect(await tasks('unused_since=2999-01-01T00:00:00Z')).toHaveLength(2)
  expect(await tasks('run=run&by=harness,version&versions=0')).toMatchObject([
    { name: 'hard', harness: 'external', version: { version: 0 } },
    { name: 'even', harness: 'external', version: { version: 0 } },
  ])
  const page = await trainer.ask<{ next: string }>('GET', '/tasks?limit=1')
  expect((await tasks(`limit=1&after=${page.next}`)).map(({ name }) => name)).toEqual(['even'])

  const listed = async (...more: string[]) => paddock(['list', 'tasks', '--data', data, '--no-config', ...more])
  const json = await listed('--run', 'run', '--json')
  expect(json.err).toBe('')
  expect((JSON.parse(json.out) as { tasks: readonly Line[] }).tasks).toEqual(remembered)
  const text = await listed('--pass-rate', '0.2..0.8')
  expect(text.out).toMatch(/even +0\.50 +1 +2/)
  expect(text.out).not.toContain('hard')
  expect((await listed('--pass-rate', 'some')).err).toContain('must be like 0.2..0.8')
  expect((await listed('--versions', '1..')).err).toContain('--versions goes with --run')
  const groups = await paddock(['list', 'groups', '--data', data, '--no-config', '--by', 'run'])
  expect(groups.err).toContain('--by is an option of `./paddock list tasks`')
})

it.each([
  ['pass_rate=0.8..0.2', 400, 'BODY_INVALID_SHAPE'],
  ['pass_rate=half', 400, 'BODY_INVALID_SHAPE'],
  ['by=colour', 400, 'BODY_INVALID_SHAPE'],
  ['versions=1..2', 400, 'BODY_INVALID_SHAPE'],
  ['after=nowhere', 400, 'BODY_INVALID_SHAPE'],
  ['colour=red', 400, 'BODY_INVALID_SHAPE'],
  ['run=nobody', 404, 'NOT_FOUND'],
])('%s is refused', async (query, status, code) => {
  expect(await trainer.refused('GET', `/tasks?${query}`)).toEqual([status, code])
})

it('leaves evaluations out', async () => {
  await trainer.ask('POST', '/runs', { run_id: 'other' })
  await trainer.attach('other')
  const asked: Json = { eval_id: 'e', tasks: [{ name: 'judged', instruction: 'Be judged.' }], split: 'train', k: 1 }
  await trainer.ask('POST', '/runs/other/evals', asked)
  const opened = await trainer.open('e.0')
  await talk(opened, 1)
  await trainer.end(opened.rollout_id, 1)
  const done = await trainer.ask('GET', '/runs/other/evals/e?wait_s=60')
  expect(done['state']).toBe('done')
  expect((await tasks('')).map(({ name }) => name)).toEqual(['hard', 'even'])
})

it('a reason beside a number is refused wherever a verdict comes in, and nothing has happened', async () => {
  const group = { group_id: 'reasons', task: { name: 'r', instruction: 'r' }, n: 1 }
  await trainer.ask('POST', '/runs/other/groups', { groups: [group] })
  const { rollout_id: rollout } = await trainer.open('reasons')
  const both = { source: 'person', reward: 1, reason: 'looks right' }
  const invalid = [400, 'BODY_INVALID_SHAPE']
  expect(await trainer.refused('POST', `/rollouts/${rollout}/end`, { end: 'completed', verdict: both })).toEqual(
    invalid,
  )
  expect((await trainer.ask('GET', `/rollouts/${rollout}`))['end']).toBe(null)
  await trainer.end(rollout, 1)
  expect(await trainer.refused('POST', `/rollouts/${rollout}/verdict`, both)).toEqual(invalid)
  // It would leave the number that is in force.
  const alone = { source: 'person', reason: 'looks wrong' }
  expect(await trainer.refused('POST', `/rollouts/${rollout}/verdict`, alone)).toEqual([409, 'VERDICT_REFUSED'])
  const headers = { authorization: `Bearer ${(await readFile(join(data, 'control-token'), 'utf8')).trim()}` }
  const answer = await fetch(`${serving.ready.control}/rollouts/${rollout}/verdicts`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(both),
  })
  expect(answer.status).toBe(400)
  expect(await trainer.ask('POST', `/rollouts/${rollout}/verdict`, { ...alone, reward: null })).toMatchObject({
    reward: null,
  })
})
