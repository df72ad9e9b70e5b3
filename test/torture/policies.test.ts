/** Several policies in one run, over `/rl/v1` of a real `paddock serve` whose engine both share: rows, weights, claims and ages of each by itself. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { paddock, serve, type Serving } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { startEngine, type EngineProcess } from '../proxy/support.ts'
import { type Claim, type Json, type JsonRound, type OpenedRollout, talk, task, Trainer } from '../rl/trainer.ts'

interface Opened extends OpenedRollout {
  readonly sessions: Readonly<Record<string, Omit<OpenedRollout, 'rollout_id' | 'slot'>>>
}
type OfPolicy = Claim & { readonly policy: string }

let directory: string
let data: string
let config: string
let serving: Serving
let engine: EngineProcess
let trainer: Trainer
let open = ''

beforeAll(async () => {
  directory = tempDir()
  data = join(directory, 'data')
  config = join(directory, 'paddock.config.ts')
  engine = await startEngine()
  // One has an engine of its own; the others share that of Paddock.
  const policies: Record<string, Json> = {}
  for (const name of ['coder', 'critic', 'guest']) {
    const path = await adapter(`${name}-0`)
    policies[name] = { adapter: { name: `${name}-0`, path }, ...(name === 'guest' ? { trained: false } : {}) }
  }
  policies['solo'] = { engines: engine.url }
  await writeFile(config, `export default ${JSON.stringify({ policies })}`)
  await start()
})
afterAll(async () => {
  await serving.stop()
  await engine.stop()
})

// One run at a time announces weights.
afterEach(() => trainer.ask('POST', `/runs/${open}/close`, {}))

async function start(): Promise<void> {
  serving = await serve(data, ['--config', config])
  trainer = new Trainer(serving, (await readFile(join(data, 'control-token'), 'utf8')).trim())
}

async function adapter(name: string): Promise<string> {
  const path = join(directory, 'adapters', name)
  await mkdir(path, { recursive: true })
  return path
}

async function openRun(run: string, more: Json = {}): Promise<void> {
  open = run
  await trainer.ask('POST', '/runs', { run_id: run, policies: ['coder', 'critic'], ...more })
  await trainer.attach(run)
}
const openGroup = (run: string, name: string, n: number) =>
  trainer.ask('POST', `/runs/${run}/groups`, { groups: [{ group_id: `${run}-${name}`, task, n }] })
const weights = async (run: string, policy: string, version: number) => {
  const label = `${run}-${policy}-${version}`
  const adapterOf = { name: label, path: await adapter(label) }
  const step = version > 1 ? version - 1 : null
  const body = { incarnation: 1, policy, version, phase: 'live', step, adapter: adapterOf }
  return trainer.ask('POST', `/runs/${run}/policy`, body)
}
/** A rollout in which each policy says something, and what each is worth. */
async function play(group: string, reward: number, byPolicy: Json = {}): Promise<string> {
  const opened = await trainer.ask<Opened>('POST', '/rollouts', { group_id: group })
  for (const session of Object.values(opened.sessions)) await talk({ ...opened, ...session }, 2)
  const verdict = { source: 'test', reward, by_policy: byPolicy }
  await trainer.ask('POST', `/rollouts/${opened.rollout_id}/end`, { end: 'completed', verdict })
  return opened.rollout_id
}
const claim = async (run: string, more: Json = {}) => (await trainer.claim(run, more)) as readonly OfPolicy[]
const claimed = async (run: string, policy: string) => {
  const [found] = await claim(run, { policy })
  if (found === undefined) throw new Error(`nothing of ${policy} to claim`)
  return { ...found, rows: (await trainer.rows(found.group_id, found.claim_id)) as JsonRound }
}
const owned = ({ rows }: JsonRound) => rows.flatMap((row) => row.node_ids)
const use = (run: string, round: JsonRound, step: number) =>
  trainer.dispose(
    run,
    round.rows.map(({ row_id: row }) => ({
      row,
      step,
      use: 0,
      outcome: 'used',
      tokens: null,
      advantage: 0,
      reward_used: 0,
      reason: null,
    })),
  )

it('hands a settled round out once for each policy, with its own rewards, and no token twice', async () => {
  await openRun('both')
  expect(await weights('both', 'coder', 1)).toMatchObject({ label: 'both-coder-1' })
  await openGroup('both', 'g', 2)
  const first = await play('both-g', 1, { critic: 0.25 })
  const second = await play('both-g', 0)
  const all = await claim('both', { max_groups: 9 })
  expect(all.map(({ policy }) => policy).toSorted()).toEqual(['coder', 'critic'])
  const rounds = new Map<string, JsonRound>()
  for (const { policy, group_id: group, claim_id: id } of all) rounds.set(policy, await trainer.rows(group, id))
  const [coder, critic] = [rounds.get('coder'), rounds.get('critic')]
  if (coder === undefined || critic === undefined) throw new Error('a policy has no rows')
  const rewards = ({ members }: JsonRound) => members.map(({ rollout_id: id, reward }) => [id, reward])
  expect(rewards(coder)).toEqual([
    [first, 1],
    [second, 0],
  ])
  expect(rewards(critic)).toEqual([
    [first, 0.25],
    [second, 0],
  ])
  expect(coder.policy).toEqual({ name: 'coder', version: 1 })
  expect(critic.policy).toEqual({ name: 'critic', version: null })
  expect(new Set(coder.rows.map((row) => (row as unknown as Json)['policy']))).toEqual(new Set(['coder']))
  // Nothing of one is in the other, and each has what it sampled in both rollouts.
  expect([owned(coder).length, owned(critic).length]).toEqual([4, 4])
  expect(owned(coder).filter((call) => owned(critic).includes(call))).toEqual([])
  expect(
    coder.rows.every((row) => row.arrays.loss_mask.includes(1) && row.versions.some(([, , low]) => low === 1)),
  ).toBe(true)
  // One is done, the other is not; nobody gets either again.
  expect(await use('both', coder, 1)).toMatchObject({
    claims_done: [all.find(({ policy }) => policy === 'coder')?.claim_id],
  })
  expect(await claim('both')).toEqual([])
  const state = await trainer.ask<{
    counts: Json
    policies: Record<string, { counts: Json; label: string | null; trained: boolean }>
  }>('GET', '/runs/both')
  expect(state.counts).toMatchObject({ claimed: 1, done: 0 })
  expect(state.policies).toMatchObject({
    coder: { trained: true, label: 'both-coder-1', counts: { done: 1, claimed: 0 } },
    critic: { trained: true, label: null, counts: { done: 0, claimed: 1 } },
    guest: { trained: false },
  })
  await use('both', critic, 1)
  expect(await trainer.ask('GET', '/runs/both')).toMatchObject({ counts: { claimed: 0, done: 1 } })
})

it('new weights of one policy make nothing of the other older', async () => {
  await openRun('ages', { staleness: { max: 0, mode: 'cancel' } })
  for (const policy of ['coder', 'critic']) await weights('ages', policy, 1)
  await openGroup('ages', 'g', 1)
  await play('ages-g', 1)
  await weights('ages', 'coder', 2)
  await weights('ages', 'coder', 3)
  const coder = await claimed('ages', 'coder')
  const critic = await claimed('ages', 'critic')
  expect(coder.rows.rows.map((row) => [row.usable, row.unusable_reason])).toEqual([[false, 'stale']])
  expect(critic.rows.rows.map((row) => [row.usable, row.unusable_reason])).toEqual([[true, null]])
  expect([coder.rows.policy.version, critic.rows.policy.version]).toEqual([3, 1])
})

it('cancels by the tokens of the policy whose weights move', async () => {
  await openRun('gate', { staleness: { max: 0, mode: 'cancel' } })
  for (const policy of ['coder', 'critic']) await weights('gate', policy, 1)
  await openGroup('gate', 'g', 1)
  const opened = await trainer.ask<Opened>('POST', '/rollouts', { group_id: 'gate-g' })
  const own = opened.sessions['critic']
  if (own === undefined) throw new Error('no session of the critic')
  await talk({ ...opened, ...own }, 1)
  // Only the critic has said anything.
  expect(await weights('gate', 'coder', 2)).toMatchObject({ stopped: [] })
  expect(await weights('gate', 'critic', 2)).toMatchObject({ stopped: [opened.rollout_id] })
})

it('gates one by its own tokens, and pauses its calls alone', async () => {
  await openRun('gated', { policies: ['coder', 'solo'], staleness: { max: 0, mode: 'gate' }, groups_per_step: 4 })
  const say = (version: number, phase: string) => ({
    incarnation: 1,
    policy: 'solo',
    version,
    phase,
    ...(phase === 'live' ? { step: version > 1 ? version - 1 : null } : {}),
  })
  expect(await trainer.ask('POST', '/runs/gated/policy', say(1, 'live'))).toMatchObject({ label: 'solo-1' })
  await openGroup('gated', 'g', 1)
  const opened = await trainer.ask<Opened>('POST', '/rollouts', { group_id: 'gated-g' })
  const as = (name: string): OpenedRollout => {
    const own = opened.sessions[name]
    if (own === undefined) throw new Error(`no session of ${name}`)
    return { ...opened, ...own }
  }
  await talk(as('coder'), 1)
  // Nothing of it would get older: the coder's tokens are not its.
  expect(await trainer.ask('POST', '/runs/gated/policy', say(2, 'pausing'))).toMatchObject({ phase: 'pausing' })
  let answered = false
  const waiting = talk(as('solo'), 1).then(() => (answered = true))
  await talk(as('coder'), 2)
  expect(answered).toBe(false)
  const paused = { policies: { solo: { phase: 'pausing', version: 1 }, coder: { phase: null } } }
  expect(await trainer.ask('GET', '/runs/gated')).toMatchObject(paused)
  expect(await trainer.refused('POST', '/runs/gated/close', {})).toEqual([409, 'ENGINE_PAUSED'])
  await trainer.ask('POST', '/runs/gated/policy', say(2, 'live'))
  await waiting
  expect(await trainer.refused('POST', '/runs/gated/policy', say(3, 'pausing'))).toEqual([409, 'GATE'])
})

it('an evaluation is of the weights of each policy, and has the mean of each', async () => {
  await openRun('judged')
  for (const [policy, version] of [
    ['coder', 1],
    ['critic', 4],
  ] as const)
    await weights('judged', policy, version)
  const evaluate = (body: Json) => trainer.ask<Json>('POST', '/runs/judged/evals', { tasks: [task], k: 2, ...body })
  const refused = (body: Json) => trainer.refused('POST', '/runs/judged/evals', { tasks: [task], k: 2, ...body })
  expect(await refused({ version: 1 })).toEqual([400, 'EVAL_INVALID'])
  expect(await refused({ versions: { guest: 1 } })).toEqual([400, 'EVAL_INVALID'])
  expect(await refused({ versions: { coder: 1, critic: 1 } })).toEqual([409, 'EVAL_VERSION'])
  const opened = await evaluate({ eval_id: 'judged-e', versions: { coder: 1, critic: 4 } })
  expect(opened).toMatchObject({
    version: null,
    versions: { coder: { version: 1, label: 'judged-coder-1' }, critic: { version: 4, label: 'judged-critic-4' } },
  })
  for (const reward of [1, 0]) await play('judged-e.0', reward, { critic: 0.25 })
  expect(await trainer.ask('GET', '/runs/judged/evals/judged-e?wait_s=60')).toMatchObject({
    state: 'done',
    result: { mean: 0.5, mean_by_policy: { coder: 0.5, critic: 0.25 }, mixed: false, rollouts: 2 },
  })
})

it('what somebody says later of one policy is its number in what is exported', async () => {
  await openRun('later')
  await openGroup('later', 'a', 1)
  const rolloutId = await play('later-a', 1)
  const said = async (...args: readonly string[]) =>
    paddock(['verdict', rolloutId, '--source', 'review', '--data', data, '--json', ...args])
  expect(await said('--policy', 'nobody=1', '--reward', '1')).toMatchObject({ code: 2, err: /POLICY_UNKNOWN/ })
  expect(await said('--policy', 'critic', '--reward', '1')).toMatchObject({ code: 2, err: /USAGE/ })
  const given = await said('--reward', '0.75', '--policy', 'critic=0.25')
  expect(JSON.parse(given.out)).toMatchObject({ reward: 0.75, byPolicy: { critic: 0.25 } })
  for (const [policy, reward] of [
    ['coder', 0.75],
    ['critic', 0.25],
  ] as const) {
    const out = join(directory, `later-${policy}`)
    const what = ['export', '--format', 'jsonl', '--rollout', rolloutId, '--policy', policy]
    const exported = await paddock([...what, '--out', out, '--data', data])
    expect([exported.code, exported.err]).toEqual([0, expect.anything()])
    const lines = (await readFile(join(out, 'rows.jsonl'), 'utf8')).trim().split('\n')
    expect(lines.map((line) => (JSON.parse(line) as Json)['reward'])).toEqual(lines.map(() => reward))
  }
})

it('asks which policy is meant, and refuses what none is', async () => {
  await openRun('named')
  await openGroup('named', 'g', 1)
  await play('named-g', 1)
  const say = (more: Json) =>
    trainer.refused('POST', '/runs/named/policy', { incarnation: 1, version: 1, phase: 'live', step: null, ...more })
  expect(await say({})).toEqual([400, 'POLICY_UNNAMED'])
  expect(await say({ policy: 'nobody' })).toEqual([404, 'POLICY_UNKNOWN'])
  expect(await say({ policy: 'guest' })).toEqual([404, 'POLICY_UNKNOWN'])
  // Weights below the adapters of others stay where they are.
  expect(await say({ policy: 'coder' })).toEqual([409, 'POLICY_SHARED'])
  expect(await say({ policy: 'coder', phase: 'pausing' })).toEqual([409, 'POLICY_SHARED'])
  expect(await trainer.refused('POST', '/runs/named/claims', { incarnation: 1, policy: 'nobody' })).toEqual([
    404,
    'POLICY_UNKNOWN',
  ])
  expect((await trainer.send('GET', '/groups/named-g/rounds/0/rows')).status).toBe(400)
  expect((await trainer.send('GET', '/groups/named-g/rounds/0/rows?policy=critic')).status).toBe(200)
  expect(await trainer.refused('POST', '/runs', { run_id: 'other', policies: ['guest'] })).toEqual([
    404,
    'POLICY_UNKNOWN',
  ])
  expect(await trainer.refused('POST', '/runs', { run_id: 'other', model: 'x' })).toEqual([409, 'RUN_REFUSED'])
  expect(await trainer.refused('POST', '/score', { sequences: [{ ids: [1, 2] }] })).toEqual([400, 'POLICY_UNNAMED'])
  const wrong = { source: 'test', reward: 1, by_policy: { nobody: 1 } }
  const opened = await trainer.claim('named')
  expect(opened).toHaveLength(1)
  const { members } = (await trainer.rows('named-g', opened[0]?.claim_id ?? '')) as JsonRound
  expect(await trainer.refused('POST', `/rollouts/${members[0]?.rollout_id ?? ''}/verdict`, wrong)).toEqual([
    404,
    'POLICY_UNKNOWN',
  ])
})

it('a run of one of them is as any run: nothing has to be named', async () => {
  await openRun('alone', { policies: ['critic'] })
  await openGroup('alone', 'g', 1)
  await play('alone-g', 1, { critic: 0.5 })
  const [found] = await claim('alone', { max_groups: 9 })
  expect(found).toMatchObject({ policy: 'critic' })
  const round = await trainer.rows('alone-g', found?.claim_id ?? '')
  expect(round.rows.map(({ reward }) => reward)).toEqual([0.5])
  expect(await claim('alone')).toEqual([])

  await weights('alone', 'critic', 3)
  const evaluation = { eval_id: 'alone-e', tasks: [task], version: 3 }
  expect(await trainer.refused('POST', '/runs/alone/evals', { ...evaluation, version: 2 })).toEqual([
    409,
    'EVAL_VERSION',
  ])
  const live = { version: 3, label: 'alone-critic-3' }
  expect(await trainer.ask('POST', '/runs/alone/evals', evaluation)).toMatchObject({
    version: live,
    versions: { critic: live },
  })
  await play('alone-e.0', 1, { critic: 0.5 })
  expect(await trainer.ask('GET', '/runs/alone/evals/alone-e?wait_s=60')).toMatchObject({
    state: 'done',
    result: { mean: 1, mean_by_policy: { critic: 0.5 }, mixed: false },
  })
})

it('after a kill each policy goes on with its own weights, and hands out what the other has not', async () => {
  await openRun('killed')
  await weights('killed', 'coder', 5)
  await weights('killed', 'critic', 7)
  await openGroup('killed', 'g', 1)
  await play('killed-g', 1)
  const coder = await claimed('killed', 'coder')
  await use('killed', coder.rows, 1)
  serving.kill('SIGKILL')
  await serving.ended
  await start()
  expect(await claim('killed', { policy: 'coder' })).toEqual([])
  const critic = await claimed('killed', 'critic')
  expect(critic.rows.policy).toEqual({ name: 'critic', version: 7 })
  await openGroup('killed', 'later', 1)
  await play('killed-later', 1)
  const versions = async (policy: string) => {
    const { rows } = await claimed('killed', policy)
    return new Set(rows.rows.flatMap((row) => row.versions.map(([, , low]) => low).filter((low) => low !== -1)))
  }
  expect(await versions('coder')).toEqual(new Set([5]))
  expect(await versions('critic')).toEqual(new Set([7]))
})
