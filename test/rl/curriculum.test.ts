/** Feeds with selectors, on a real `paddock serve` with real boxes: what is asked for follows what is remembered. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { paddock, serve, type Serving } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type Claim, type Json, Trainer } from './trainer.ts'

const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
/** The example plugins, over the sources instead of the built package. */
async function plugins(into: string): Promise<void> {
  for (const name of ['environment', 'reward', 'curriculum']) {
    const text = await readFile(at(`examples/plugins/${name}.ts`), 'utf8')
    const kits = text.replaceAll(/'paddock-rl\/(\w+)'/g, (_, kit: string) => `'${at(`src/kits/${kit}.ts`)}'`)
    await writeFile(join(into, `${name}.ts`), kits)
  }
}
let directory: string
let data: string
let config: string
let skill: string
let tasks: string
let serving: Serving
let trainer: Trainer

/** Solves what `skill.json` names, after one request to the model; of `infra` the box is gone. */
const harness = (path: string) => `
import { readFileSync } from 'node:fs'
export default {
  name: 'skilled', apiVersion: 1, version: '1', dialect: 'chat', place: 'host', box: 'tools',
  run: async ({ baseUrl, apiKey, model, prompt, task, box, signal }) => {
    const skill = JSON.parse(readFileSync(${JSON.stringify(path)}, 'utf8'))
    if (skill.infra) throw new Error('no network')
    const answer = await fetch(baseUrl + '/chat/completions', {
      method: 'POST', signal, headers: { authorization: 'Bearer ' + apiKey, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: prompt }] }),
    })
    await answer.text()
    const sum = task.data.numbers.reduce((total, number) => total + number, 0)
    const said = skill.solves.includes(task.name) ? sum : 0
    await box.exec({ command: ['tee', '/workspace/answer.txt'], stdin: String(said) }, { signal })
    return { end: 'completed', detail: '', answer: '' }
  },
}`

const selectors = `
const common = { apiVersion: 1, version: '1.0.0' }
export const broken = { ...common, name: 'broken', choose: () => { throw new Error('no idea') } }
export const lost = { ...common, name: 'lost', choose: () => ['nobody'] }
`

beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  skill = join(directory, 'skill.json')
  tasks = join(directory, 'sums')
  config = join(directory, 'paddock.config.mjs')
  const sums = { easy: [20, 22], other: [1, 1], hard: [1, 2, 3], hardest: [1, 2, 3, 4] }
  await mkdir(tasks)
  for (const [name, numbers] of Object.entries(sums)) {
    const task = { instruction: `Add ${numbers.join(', ')}.`, data: { numbers } }
    await writeFile(join(tasks, `${name}.json`), JSON.stringify(task))
  }
  await writeFile(join(directory, 'harness.mjs'), harness(skill))
  await writeFile(join(directory, 'selectors.mjs'), selectors)
  const named = { environments: ['./environment.ts'], harnesses: ['./harness.mjs'] }
  await writeFile(
    config,
    `import { broken, lost } from './selectors.mjs'
     export default { ...${JSON.stringify(named)}, selectors: ['./curriculum.ts', broken, lost] }`,
  )
  await plugins(directory)
  await can()
  await start()
})
afterAll(async () => {
  await serving.stop()
})

async function start(): Promise<void> {
  serving = await serve(data, ['--config', config])
  trainer = new Trainer(serving, (await readFile(join(data, 'control-token'), 'utf8')).trim())
}
const can = (...solves: readonly string[]) => writeFile(skill, JSON.stringify({ solves }))
const asked = (more: Json = {}, set: Json = {}) => ({
  tasks,
  environment: 'sums',
  harness: 'skilled',
  feed: [{ set: 'train', n: 2, ...set }],
  seed: 3,
  capacity: { groups: 1 },
  ...more,
})

async function next(run: string, incarnation = 1): Promise<{ claim: Claim; task: string; rows: readonly string[] }> {
  for (;;) {
    const [claim] = await trainer.claim(run, { wait_s: 60, incarnation })
    if (claim === undefined) continue
    const { task, rows } = await trainer.rows(claim.group_id, claim.claim_id)
    return { claim, task: task.name, rows: rows.map((row) => row.row_id) }
  }
}
async function trained(run: string, step: number, incarnation = 1): Promise<string> {
  const { task, rows } = await next(run, incarnation)
  await trainer.dispose(
    run,
    rows.map((row) => ({ row, step, outcome: 'used', advantage: 0 })),
    incarnation,
  )
  return task
}
interface FeedState {
  readonly feed: {
    readonly drawn: number
    readonly stopped: { readonly reason: string; readonly message: string } | null
  }
  readonly counts: { readonly failed: number; readonly running: number }
}
const state = (run: string) => trainer.ask<FeedState>('GET', `/runs/${run}`)
/** The first event of a kind. */
async function event(run: string, type: string): Promise<Json> {
  for (let after = ''; ;) {
    const answer = await trainer.send('GET', `/runs/${run}/events?wait_s=60${after}`)
    const lines = (await answer.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Json)
    const found = lines.find((line) => line['type'] === type)
    if (found !== undefined) return found
    after = `&after=${encodeURIComponent(String(lines.at(-1)?.['cursor']))}`
  }
}

it('is refused by what is wrong with a selector', async () => {
  const refused = (selector: unknown, more: Json = {}) => trainer.refused('POST', '/runs', asked(more, { selector }))
  expect(await refused('nobody')).toEqual([400, 'SELECTOR_UNKNOWN'])
  expect(await refused({ name: 'thompson', options: { goal: 1 } })).toEqual([400, 'CONFIG_INVALID'])
  expect(await refused({ name: 'thompson', options: { target: 7 } })).toEqual([400, 'CONFIG_INVALID'])
  expect(await refused({ name: 'thompson', colour: 'red' })).toEqual([400, 'BODY_INVALID_SHAPE'])
  expect(await trainer.refused('POST', '/runs', { feed_max_failed: 3 })).toEqual([400, 'BODY_INVALID_SHAPE'])
})

it('what is asked for follows what passes, and goes on over a kill', async () => {
  const selector = { name: 'steps', options: { attempts: 2 } }
  await trainer.ask('POST', '/runs', asked({ run_id: 'steps' }, { selector }))
  await trainer.attach('steps')
  await can()
  expect(['easy', 'other']).toContain(await trained('steps', 1))
  await can('easy', 'other')
  // The group that is under way by now may have been sampled before; after that both pass.
  const tasks_: string[] = []
  for (let step = 2; !tasks_.includes('hard'); step += 1) tasks_.push(await trained('steps', step))
  expect(tasks_.slice(0, -1).every((name) => name === 'easy' || name === 'other')).toBe(true)
  expect(tasks_.length).toBeLessThan(12)

  serving.kill('SIGKILL')
  await serving.ended
  await can('easy', 'other', 'hard')
  await start()
  const after: string[] = []
  for (let step = 50; !after.includes('hardest'); step += 1) after.push(await trained('steps', step))
  expect(after.slice(0, -1).every((name) => name === 'hard')).toBe(true)
  await trainer.ask('POST', '/runs/steps/close', {})
})

it('an open feed goes back with its trainer: what is remembered, what was lost, and what is chosen', async () => {
  const run = 'back'
  await can('easy', 'other', 'hard')
  await trainer.ask(
    'POST',
    '/runs',
    asked({ run_id: run }, { selector: { name: 'steps', options: { attempts: 2, done: 0.5 } } }),
  )
  await trainer.attach(run)
  const weights = (incarnation: number, phase: string) =>
    trainer.ask('POST', `/runs/${run}/policy`, {
      incarnation,
      version: 1,
      phase,
      ...(phase === 'live' ? { step: 2 } : {}),
    })
  const use = (rows: readonly string[], step: number, incarnation: number) =>
    trainer.dispose(
      run,
      rows.map((row) => ({ row, step, outcome: 'used', advantage: 0 })),
      incarnation,
    )
  await trained(run, 1)
  const second = await next(run)
  // What follows is sampled by weights that the second step has made.
  await weights(1, 'pausing')
  await use(second.rows, 2, 1)
  await weights(1, 'live')
  expect(await trained(run, 3)).toBe('hard')
  expect((await next(run)).task).toBe('hardest')

  // Back behind those weights, which had learned what is hard.
  await can('easy', 'other')
  const incarnation = await trainer.attach(run, 1)
  const again = await next(run, incarnation)
  expect(again.claim).toMatchObject({ group_id: `${run}.feed.1`, again: true })
  await weights(incarnation, 'live')
  await use(again.rows, 2, incarnation)
  // The groups that were lost are of the tasks that were chosen for them.
  for (const [place, task] of ['hard', 'hardest'].entries()) {
    const lost = await next(run, incarnation)
    expect(lost).toMatchObject({ task, claim: { group_id: `${run}.feed.${place + 2}.${incarnation}` } })
    await use(lost.rows, place + 3, incarnation)
  }
  // Of the four attempts at it two passed, and those are of weights that are gone.
  const fifth = await next(run, incarnation)
  expect(fifth).toMatchObject({ task: 'hard', claim: { group_id: `${run}.feed.4` } })
  expect((await state(run)).feed.drawn).toBe(5)
  await trainer.ask('POST', `/runs/${run}/close`, {})
})

it('the same seed and the same outcomes are the same choices', async () => {
  await can('easy', 'hard')
  const names: string[][] = []
  for (const run of ['one', 'two']) {
    await trainer.ask('POST', '/runs', asked({ run_id: run }, { selector: 'thompson' }))
    await trainer.attach(run)
    const own: string[] = []
    for (let step = 1; step <= 5; step += 1) own.push(await trained(run, step))
    names.push(own)
    await trainer.ask('POST', `/runs/${run}/close`, {})
  }
  expect(names[1]).toEqual(names[0])
})

it.each([
  ['broken', 'it threw: Error: no idea'],
  ['lost', 'it names nobody'],
])('a selector that fails (%s) stops its feed, and says so once', async (selector, said) => {
  await trainer.ask('POST', '/runs', asked({ run_id: selector }, { selector }))
  await trainer.attach(selector)
  const told = await event(selector, 'feed_stopped')
  expect(told).toMatchObject({ reason: 'selector_failed', code: 'SELECTOR_INVALID', incarnation: 1 })
  expect(told['message']).toContain(said)
  expect((await state(selector)).feed).toMatchObject({ drawn: 0, stopped: { reason: 'selector_failed' } })
  // A trainer that comes again tries it again.
  const incarnation = await trainer.attach(selector)
  let last = told
  while (last['incarnation'] !== incarnation) {
    const answer = await trainer.send('GET', `/runs/${selector}/events?wait_s=60&after=${String(last['cursor'])}`)
    const found = (await answer.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Json)
    last = found.find(({ type }) => type === 'feed_stopped') ?? { ...last, cursor: found.at(-1)?.['cursor'] }
  }
  await trainer.ask('POST', `/runs/${selector}/close`, {})
})

it('a feed of which every group fails stops, and goes on once its trainer attaches again', async () => {
  await writeFile(skill, JSON.stringify({ solves: [], infra: true }))
  await trainer.ask('POST', '/runs', asked({ run_id: 'failing', feed_max_failed: 3 }, { n: 1 }))
  await trainer.attach('failing')
  expect(await event('failing', 'feed_stopped')).toMatchObject({ reason: 'groups_failed' })
  const found = await state('failing')
  expect(found.feed).toMatchObject({ drawn: 3, stopped: { reason: 'groups_failed' } })
  expect(found.counts).toMatchObject({ failed: 3, running: 0 })
  await can('easy')
  const incarnation = await trainer.attach('failing')
  expect((await next('failing', incarnation)).claim.group_id).toBe('failing.feed.3')
  await trainer.ask('POST', '/runs/failing/close', {})
})

it('`paddock run --select` runs what a selector chooses, by what is remembered', async () => {
  await can('easy')
  const run = async (...more: string[]) => {
    const args = ['run', tasks, '--env', 'sums', '--harness', 'skilled', '--config', config, '--data', data, '--json']
    return paddock([...args, '--n', '2', ...more])
  }
  interface Line {
    readonly name: string
    readonly attempts: number
    readonly uses: { readonly used: number }
  }
  const known = await trainer.ask<{ tasks: readonly Line[] }>('GET', '/tasks?harness=skilled')
  const [least] = known.tasks.toSorted((a, b) => a.uses.used - b.uses.used || a.attempts - b.attempts)
  const chosen = await run('--select', 'least-used')
  const { summary } = JSON.parse(chosen.out) as { summary: { rollouts: readonly { task: { name: string } }[] } }
  expect(known.tasks).toHaveLength(4)
  expect(summary.rollouts.map(({ task }) => task.name)).toEqual([least?.name, least?.name])
  expect((await run('--select', 'nobody')).err).toContain('SELECTOR_UNKNOWN')
  expect((await run('--select-count', '2')).err).toContain('go with --select')
  expect((await run('--select', 'thompson', '--select-option', 'goal=1')).err).toContain('no option goal')
})
