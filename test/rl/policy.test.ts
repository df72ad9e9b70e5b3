/** Weights of a trainer over `/rl/v1` of a real `paddock serve`: what was sampled by which, and what becomes of the old. */
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { serve, type Serving } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { type Json, talk, task, Trainer } from './trainer.ts'

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

async function openRun(more: Json = {}): Promise<void> {
  runs += 1
  run = `run-${runs}`
  await trainer.ask('POST', '/runs', { run_id: run, ...more })
  await trainer.attach(run)
}
const openGroup = (name: string, n = 1) =>
  trainer.ask('POST', `/runs/${run}/groups`, { groups: [{ group_id: `${run}-${name}`, task, n }] })
/** Labels are of one engine, whichever run names them. */
const say = (version: number, phase: string, more: Json = {}) => ({
  incarnation: 1,
  version,
  phase,
  ...(phase === 'live' ? { step: version > 1 ? version - 1 : null } : {}),
  label: `${run}-${version}`,
  ...more,
})
const policy = (version: number, phase: string, more: Json = {}) =>
  trainer.ask('POST', `/runs/${run}/policy`, say(version, phase, more))
const refused = (version: number, phase: string, more: Json = {}) =>
  trainer.refused('POST', `/runs/${run}/policy`, say(version, phase, more))
const engine = async () => {
  const token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
  const answer = await fetch(`${serving.ready.control}/engine`, { headers: { authorization: `Bearer ${token}` } })
  return (await answer.json()) as { waiting: number; paused: string | null }
}
const rowsOf = async (name: string) => {
  const [claim] = await trainer.claim(run)
  return (await trainer.rows(`${run}-${name}`, claim?.claim_id ?? '')).rows
}
const events = async () => {
  const text = await (await trainer.send('GET', `/runs/${run}/events`)).text()
  return text
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { type: string }).type)
}

describe('weights', () => {
  it('are told of each token: calls wait from pausing to live', async () => {
    await openRun()
    await policy(1, 'live')
    await openGroup('g')
    const opened = await trainer.open(`${run}-g`)
    await talk(opened, 1)
    expect(await policy(2, 'pausing', { mode: 'drain' })).toMatchObject({ phase: 'pausing', drained: 0 })
    expect(await policy(2, 'pausing')).toMatchObject({ phase: 'pausing' })
    let answered = false
    const waiting = talk(opened, 1).then(() => (answered = true))
    while ((await engine()).waiting === 0) await new Promise((resolve) => setImmediate(resolve))
    expect(answered).toBe(false)
    expect(await policy(2, 'live')).toMatchObject({
      label: `${run}-2`,
      replicas: [{ label: `${run}-2`, source: 'told' }],
      stopped: [],
    })
    await waiting
    await trainer.end(opened.rollout_id, 1)
    const rows = await rowsOf('g')
    const sampled = rows.flatMap(({ versions }) => versions.filter(([, , low]) => low !== -1))
    expect(sampled.map(([, , low, high]) => [low, high])).toEqual([
      [1, 1],
      [2, 2],
    ])
    expect(await trainer.ask('GET', `/runs/${run}`)).toMatchObject({ policy: { version: 2, label: `${run}-2` } })
    expect(await events()).toEqual([
      'attached',
      'policy_live',
      'group_opened',
      'policy_pausing',
      'policy_live',
      'group_settled',
    ])
  })

  it('that were given up are the old ones where the engine says so; else everything stands still until some are live', async () => {
    await openRun()
    expect(await policy(1, 'failed')).toEqual({
      phase: 'failed',
      version: 1,
      restored: false,
      halted: 'unknown_weights',
    })
    expect(await trainer.ask('GET', `/runs/${run}`)).toMatchObject({ halted: 'unknown_weights' })
    await openGroup('g')
    const opened = await trainer.open(`${run}-g`)
    const waiting = talk(opened, 1)
    await policy(1, 'live')
    await waiting
    await policy(2, 'pausing')
    expect(await policy(2, 'failed')).toMatchObject({ restored: true })
    await talk(opened, 1)
    expect(await trainer.ask('GET', `/runs/${run}`)).toMatchObject({ halted: null, policy: { version: 1 } })
  })

  it.each([
    ['being moved', 'pausing', { phase: 'pausing' }],
    ['unknown', 'failed', { phase: 'failed' }],
  ])('that are %s when Paddock is killed are so afterwards: nothing is sampled', async (_what, phase, policyThen) => {
    await openRun()
    await openGroup('g')
    await policy(1, phase)
    serving.kill('SIGKILL')
    await serving.ended
    await start()
    expect((await engine()).paused).toBe('drain')
    expect(await trainer.ask('GET', `/runs/${run}`)).toMatchObject({ policy: policyThen })
    expect(await trainer.refused('POST', `/runs/${run}/close`, {})).toEqual([409, 'ENGINE_PAUSED'])
    const opened = await trainer.open(`${run}-g`)
    const waiting = talk(opened, 1)
    while ((await engine()).waiting === 0) await new Promise((resolve) => setImmediate(resolve))
    await policy(1, 'pausing')
    await policy(1, 'live')
    await waiting
    await trainer.end(opened.rollout_id, 1)
    const [row] = await rowsOf('g')
    expect(row?.versions.map(([, , low]) => low)).toEqual([-1, 1])
    expect((await engine()).paused).toBeNull()
  })

  it('have one name for good, and one run that announces them', async () => {
    await openRun()
    await policy(1, 'live')
    await policy(1, 'live')
    expect(await refused(2, 'live', { label: `${run}-1` })).toEqual([409, 'STORE_CONFLICT'])
    expect(await refused(1, 'live', { incarnation: 2 })).toEqual([409, 'FENCED'])
    await trainer.ask('POST', '/runs', { run_id: 'watcher' })
    await trainer.attach('watcher')
    expect(await trainer.refused('POST', '/runs/watcher/policy', say(1, 'live'))).toEqual([409, 'POLICY_OWNED'])
    await trainer.ask('POST', '/runs/watcher/close', {})
  })

  it.each([
    ['a label of other weights', () => [3, { label: `${run}-1` }] as const],
    ['a number of other weights', () => [2, { label: `${run}-other` }] as const],
  ])('that are refused for %s are not in the engine', async (_what, refusedAs) => {
    await openRun()
    await policy(1, 'live')
    await policy(2, 'live')
    expect(await refused(...([refusedAs()[0], 'live', refusedAs()[1]] as const))).toEqual([409, 'STORE_CONFLICT'])
    await trainer.settle(run, `${run}-g`, [1], 1)
    const [row] = await rowsOf('g')
    expect(row?.versions.map(([, , low, high]) => [low, high])).toEqual([
      [-1, -1],
      [2, 2],
    ])
  })

  it('name the step that made them, or are refused', async () => {
    await openRun()
    expect(await refused(1, 'live', { step: undefined })).toEqual([422, 'STEP_MISSING'])
    expect(await refused(1, 'pausing', { step: 3 })).toEqual([400, 'BODY_INVALID_SHAPE'])
    await policy(1, 'live')
    await policy(2, 'live')
    expect(await refused(2, 'live', { step: 7 })).toEqual([409, 'STORE_CONFLICT'])
    // The engine does not go back to older weights, nor to a lower number.
    expect(await refused(1, 'live')).toEqual([409, 'STORE_CONFLICT'])
    expect(await refused(1, 'live', { label: `${run}-low` })).toEqual([409, 'STORE_CONFLICT'])
    expect(await trainer.ask('GET', `/runs/${run}`)).toMatchObject({ policy: { version: 2 } })
  })

  it.each(
    ['disposes, then says live', 'says live, then disposes'].flatMap((order) =>
      [
        [4, 1],
        [5, 2],
        [6, 2],
      ].map(([resumed, version]) => [order, resumed, version] as const),
    ),
  )('of a trainer that %s in step 5 and resumes from step %d: version %d is live', async (order, resumed, version) => {
    await openRun()
    await policy(1, 'live')
    await trainer.settle(run, `${run}-a`, [1], 1)
    const [row] = await rowsOf('a')
    const dispose = () => trainer.dispose(run, [{ row: row?.row_id, step: 5, outcome: 'used' }])
    if (order.startsWith('disposes')) await dispose()
    await policy(2, 'live', { step: 5 })
    if (order.startsWith('says')) await dispose()
    await trainer.settle(run, `${run}-b`, [1], 1)
    await trainer.attach(run, resumed)
    expect(await trainer.ask('GET', `/runs/${run}`)).toMatchObject({ policy: { version } })
    const claims = await trainer.claim(run, { incarnation: 2, max_groups: 9 })
    const rows = await Promise.all(claims.map((claim) => trainer.rows(claim.group_id, claim.claim_id)))
    const reasons = rows.flatMap((round) => round.rows.map((one) => one.unusable_reason))
    expect(reasons).toEqual(version === 1 ? [null, 'stale'] : [null])
  })

  it('of steps that were undone are gone: what they sampled is stale, and their name is used up', async () => {
    await openRun()
    await policy(1, 'live')
    await trainer.settle(run, `${run}-a`, [1], 1)
    const [row] = await rowsOf('a')
    await trainer.dispose(run, [{ row: row?.row_id, step: 1, outcome: 'used' }])
    await policy(2, 'live')
    await trainer.settle(run, `${run}-b`, [1], 1)
    const again = await trainer.ask('POST', `/runs/${run}/attach`, { resume_step: 0 })
    expect(again).toMatchObject({ incarnation: 2, again: [`${run}-a`] })
    expect(await refused(2, 'live', { incarnation: 2 })).toEqual([409, 'STORE_CONFLICT'])
    await policy(2, 'live', { incarnation: 2, label: `${run}-2b` })
    const claims = await trainer.claim(run, { incarnation: 2, max_groups: 9 })
    const rows = await Promise.all(claims.map((claim) => trainer.rows(claim.group_id, claim.claim_id)))
    expect(rows.flatMap((round) => round.rows.map((one) => one.unusable_reason))).toEqual([null, 'stale'])
  })
})

describe('staleness', () => {
  it('under report: old rows train, and say by which weights', async () => {
    await openRun({ staleness: { max: 0, mode: 'report' } })
    await policy(1, 'live')
    await trainer.settle(run, `${run}-g`, [1], 1)
    await policy(5, 'live')
    const [row] = await rowsOf('g')
    expect(row).toMatchObject({ usable: true })
    expect(row?.versions.map(([, , low]) => low)).toEqual([-1, 1])
  })

  it('under cancel: what is too old is stopped, and unusable at its hand-out', async () => {
    await openRun({ staleness: { max: 1, mode: 'cancel' } })
    await policy(1, 'live')
    await trainer.settle(run, `${run}-old`, [1], 1)
    await openGroup('running', 2)
    const [slow, young] = [await trainer.open(`${run}-running`), await trainer.open(`${run}-running`)]
    await talk(slow, 1)
    expect(await policy(2, 'live')).toMatchObject({ stopped: [] })
    await talk(young, 1)
    expect(await policy(3, 'live')).toMatchObject({ stopped: [slow.rollout_id] })
    expect(await trainer.ask('GET', `/rollouts/${slow.rollout_id}`)).toMatchObject({
      end: 'cancelled',
      end_detail: 'stale: sampled under weights 1, and 3 are live',
    })
    expect(await trainer.ask('GET', `/rollouts/${young.rollout_id}`)).toMatchObject({ end: null })
    expect((await rowsOf('old'))[0]).toMatchObject({ usable: false, unusable_reason: 'stale', reward: 1 })
  })

  it('under cancel: members that go on between two rounds are stopped too', async () => {
    await openRun({ staleness: { max: 1, mode: 'cancel' } })
    await policy(1, 'live')
    const spec = { n: 1, stop_when: { usable: 1 }, carry: true }
    await trainer.ask('POST', `/runs/${run}/groups`, { groups: [{ group_id: `${run}-g`, task, ...spec }] })
    const [slow, fast] = [await trainer.open(`${run}-g`), await trainer.open(`${run}-g`)]
    await talk(slow, 1)
    await talk(fast, 1)
    await trainer.end(fast.rollout_id, 1)
    const [row] = await rowsOf('g')
    await trainer.dispose(run, [{ row: row?.row_id, step: 1, outcome: 'used' }])
    expect(await policy(2, 'live')).toMatchObject({ stopped: [] })
    expect(await policy(3, 'live')).toMatchObject({ stopped: [slow.rollout_id] })
  })

  it('under gate: groups wait for steps, and weights for groups', async () => {
    await openRun({ staleness: { max: 1, mode: 'gate' }, groups_per_step: 1 })
    await policy(1, 'live')
    await openGroup('slow')
    const slow = await trainer.open(`${run}-slow`)
    await talk(slow, 1)
    await trainer.settle(run, `${run}-fast`, [1], 1)
    expect(
      await trainer.refused('POST', `/runs/${run}/groups`, { groups: [{ group_id: `${run}-x`, task, n: 1 }] }),
    ).toEqual([429, 'RUN_FULL'])
    expect(await trainer.refused('POST', `/groups/${run}-fast/rounds`, { n: 1 })).toEqual([429, 'RUN_FULL'])
    const [row] = await rowsOf('fast')
    await trainer.dispose(run, [{ row: row?.row_id, step: 1, outcome: 'used' }])
    await openGroup('x')
    await policy(2, 'pausing')
    await policy(2, 'live')
    const answer = await trainer.send('POST', `/runs/${run}/policy`, say(3, 'pausing'))
    expect(await answer.json()).toMatchObject({ error: { code: 'GATE', data: { blocking: [`${run}-slow`] } } })
    await trainer.end(slow.rollout_id, 1)
    const [late] = await rowsOf('slow')
    expect(late).toMatchObject({ usable: true })
    expect(await refused(3, 'pausing')).toEqual([409, 'GATE'])
    await trainer.dispose(run, [{ row: late?.row_id, step: 2, outcome: 'used' }])
    await policy(3, 'pausing')
    await policy(3, 'live')
    expect(await events()).not.toContain('gate_passed')
  })

  it('under gate, passed by a trainer that does not ask, is report from then on', async () => {
    await openRun({ staleness: { max: 0, mode: 'gate' }, groups_per_step: 4 })
    await policy(1, 'live')
    await openGroup('g')
    await talk(await trainer.open(`${run}-g`), 1)
    await policy(2, 'live')
    expect(await events()).toContain('gate_passed')
    expect(await trainer.ask('GET', `/runs/${run}`)).toMatchObject({ staleness: { max: 0, mode: 'report' } })
    await policy(3, 'pausing')
    await policy(3, 'live')
    expect(await trainer.refused('POST', '/runs', { run_id: 'no', staleness: { mode: 'gate' } })).toEqual([
      400,
      'BODY_INVALID_SHAPE',
    ])
  })
})

describe('weights that are a LoRA adapter', () => {
  const lora = async (name: string) => {
    await mkdir(join(directory, name), { recursive: true })
    return { name, path: join(directory, name) }
  }
  const says = (version: number, more: Json) => ({
    incarnation: 1,
    version,
    phase: 'live',
    step: version > 1 ? version - 1 : null,
    ...more,
  })
  const live = (version: number, more: Json) => trainer.ask('POST', `/runs/${run}/policy`, says(version, more))
  const wrong = (version: number, more: Json) => trainer.refused('POST', `/runs/${run}/policy`, says(version, more))

  it('are live without a pause, name their rows, and are there again after a kill', async () => {
    await openRun({ staleness: { max: 0, mode: 'cancel' } })
    const [one, two] = [await lora(`${run}-one`), await lora(`${run}-two`)]
    expect(await live(1, { adapter: one })).toMatchObject({
      phase: 'live',
      label: one.name,
      replicas: [{ label: one.name, source: 'told' }],
      out: [],
    })
    await openGroup('g')
    await talk(await trainer.open(`${run}-g`), 1)
    // The rollout is older than may be at once.
    expect(await live(2, { adapter: two })).toMatchObject({ label: two.name, stopped: [expect.any(String)] })
    await openGroup('h')
    const opened = await trainer.open(`${run}-h`)
    await talk(opened, 1)
    await trainer.end(opened.rollout_id, 1)
    serving.kill('SIGKILL')
    await serving.ended
    await start()
    await openGroup('i')
    const later = await trainer.open(`${run}-i`)
    await talk(later, 1)
    await trainer.end(later.rollout_id, 1)
    const claims = await trainer.claim(run, { max_groups: 4 })
    for (const name of ['h', 'i']) {
      const claim = claims.find(({ group_id: id }) => id === `${run}-${name}`)
      const { rows } = await trainer.rows(`${run}-${name}`, claim?.claim_id ?? '')
      const sampled = rows.flatMap(({ versions }) => versions.filter(([, , low]) => low !== -1))
      expect(sampled.map(([, , low, high]) => [low, high])).toEqual([[2, 2]])
    }
  })

  it('wait for groups under gate, as a pause does, and the run stays gated', async () => {
    await openRun({ staleness: { max: 0, mode: 'gate' }, groups_per_step: 1 })
    const [one, two] = [await lora(`${run}-one`), await lora(`${run}-two`)]
    await live(1, { adapter: one })
    await trainer.settle(run, `${run}-g`, [1], 1)
    const answer = await trainer.send('POST', `/runs/${run}/policy`, says(2, { adapter: two }))
    expect(await answer.json()).toMatchObject({ error: { code: 'GATE', data: { blocking: [`${run}-g`] } } })
    await live(1, { adapter: one })
    const [row] = await rowsOf('g')
    await trainer.dispose(run, [{ row: row?.row_id, step: 1, outcome: 'used' }])
    expect(await live(2, { adapter: two })).toMatchObject({ label: two.name })
    expect(await events()).not.toContain('gate_passed')
  })

  it('one adapter is one version, and nothing that an adapter has no use for is taken', async () => {
    await openRun()
    const [one, two] = [await lora(`${run}-one`), await lora(`${run}-two`)]
    await live(1, { adapter: one })
    expect(await wrong(2, { adapter: one, label: 'other' })).toEqual([409, 'STORE_CONFLICT'])
    expect(await wrong(1, { adapter: two, label: one.name })).toEqual([409, 'STORE_CONFLICT'])
    expect(await wrong(2, { adapter: { ...two, path: one.path } })).toEqual([502, 'WEIGHTS_REFUSED'])
    expect(await wrong(2, { adapter: two, mode: 'drain' })).toEqual([400, 'BODY_INVALID_SHAPE'])
    expect(await wrong(2, { adapter: two, phase: 'pausing' })).toEqual([400, 'BODY_INVALID_SHAPE'])
    expect(await wrong(2, { adapter: two, requests: [{ path: '/x' }] })).toEqual([400, 'BODY_INVALID_SHAPE'])
    expect(await wrong(2, { adapter: { name: 'a"b' } })).toEqual([400, 'BODY_INVALID_SHAPE'])
    expect(await live(1, { adapter: one })).toMatchObject({ label: one.name })
    expect(await trainer.ask('GET', `/runs/${run}`)).toMatchObject({ policy: { version: 1, label: one.name } })
    // Whole weights again: nobody names an adapter any more.
    expect(await live(3, { label: `${run}-3` })).toMatchObject({ replicas: [{ label: `${run}-3` }] })
  })
})
