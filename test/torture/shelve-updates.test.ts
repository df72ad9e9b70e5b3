/**
 * A run whose half-done rollouts are shelved by themselves whenever its trainer moves weights, over `/rl/v1` of a real
 * `paddock serve`: two updates, a box that dies in one, and Paddock killed in another.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import Docker from 'dockerode'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requireDocker } from '../../src/testing/sandbox/index.ts'
import { buildRows, openReader, type StoreReader } from '../../src/trajectory/index.ts'
import { serve, type Serving } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { startEngine, type EngineProcess } from '../proxy/support.ts'
import { type Json, Trainer } from '../rl/trainer.ts'
import { containersOf, model, terminalTask } from '../rollout/world.ts'
import { followLive } from '../rl/follow-live.ts'
import { leftBy } from './left-by.ts'
import { heldMs, shelvedOf, stageMs } from './shelve-events.ts'
import { sized } from './size.ts'

const count = sized(32, 8)
/** Tokens of a leg before it stands still. */
const legTokens = 3
const calls = 3
const tasks = fileURLToPath(new URL('../../examples/tasks/terminal', import.meta.url))
const run = 'moves-weights'

describe.runIf(await requireDocker())(`${count} half-done rollouts whose trainer moves weights`, () => {
  let directory: string
  let data: string
  let engine: EngineProcess
  let serving: Serving
  let trainer: Trainer
  const agentMs = new Map<string, number>()

  beforeAll(async () => {
    directory = tempDir()
    data = join(directory, 'data')
    engine = await startEngine('--model', model)
    const { instruction } = await terminalTask('log-forensics')
    const steps = [{ say: 'one two three four five six seven eight nine ten eleven twelve' }]
    await engine.control('/scripts', { instruction, candidates: [{ name: 'only', weight: 0, steps }] })
    const config = join(directory, 'paddock.config.mjs')
    await writeFile(config, `export default { run: { limits: { agent: ${count}, boot: 2, verify: 2 } } }`)
    await start()
    const body = `{"model":"${model}","stream":true,"messages":[{"role":"user","content":${JSON.stringify(instruction)}}]}`
    const ask = `curl -sSN --fail "$OPENAI_BASE_URL/chat/completions" -H 'content-type: application/json' -d @/tmp/body`
    const command = `cat > /tmp/body <<'JSON'\n${body}\nJSON\nfor i in $(seq ${calls}); do ${ask} > /tmp/said || exit 9; grep -q DONE /tmp/said || exit 8; done`
    const asked = { run_id: run, tasks, harness: 'shell', command, at_weight_update: 'shelve' }
    await trainer.ask('POST', '/runs', { ...asked, staleness: { max: 9, mode: 'report' } })
    await trainer.attach(run)
    await policy(0, 'live')
  })
  afterAll(async () => {
    await serving.stop()
    await engine.stop()
  })

  async function start(): Promise<void> {
    const args = ['--config', join(directory, 'paddock.config.mjs')]
    serving = await serve(data, args, { ENGINE_URL: engine.url })
    trainer = new Trainer(serving, await token())
    await followLive(`${serving.ready.control}/events`, await token(), (kind, said) => {
      const { progress } = said as { progress?: { type: string; rollout: { rolloutId: string; agentMs: number } } }
      if (kind === 'progress' && progress?.type === 'ended')
        agentMs.set(progress.rollout.rolloutId, progress.rollout.agentMs)
    })
  }
  const token = async () => (await readFile(join(data, 'control-token'), 'utf8')).trim()
  const control = async (path: string): Promise<unknown> => {
    const headers = { authorization: `Bearer ${await token()}` }
    return (await fetch(`${serving.ready.control}${path}`, { headers })).json()
  }
  const policy = (version: number, phase: string): Promise<Json> =>
    trainer.ask('POST', `/runs/${run}/policy`, {
      incarnation: 1,
      version,
      phase,
      ...(phase === 'live' ? { step: version === 0 ? null : version - 1 } : {}),
      label: `w${version}`,
      timeout_s: 120,
    })
  const submit = (group: string, n: number): Promise<Json> =>
    trainer.ask('POST', `/runs/${run}/groups`, { groups: [{ group_id: group, task: 'log-forensics', n }] })
  /** Every generation stands still after a few tokens, until it is ended. */
  const stall = () => engine.fault({ kind: 'stall', at: 'mid_stream', token: legTokens, seconds: 600, count: 100_000 })
  const goOn = () => fetch(`${engine.url}/control/faults`, { method: 'DELETE' })
  /** So many agents wait in the middle of an answer. */
  async function midway(agents: number): Promise<void> {
    for (;;) {
      const { replicas } = (await control('/engine')) as { replicas: readonly { inFlight: number }[] }
      if (replicas.reduce((sum, { inFlight }) => sum + inFlight, 0) === agents) return
      await nextTurn()
    }
  }
  const rolloutsOf = async (group: string) =>
    ((await control(`/groups/${group}`)) as { rollouts: readonly { id: string; slot: number }[] }).rollouts
  async function ended(rollout: string | undefined): Promise<Json> {
    for (;;) {
      const found = await trainer.ask('GET', `/rollouts/${rollout ?? 'none'}?wait_s=60`)
      if (found['end'] !== null) return found
    }
  }
  async function settled(group: string): Promise<Json> {
    for (;;) {
      const [claim] = await trainer.claim(run, { wait_s: 60 })
      if (claim?.group_id === group) return { ...claim.settled }
    }
  }
  const reader = (): Promise<StoreReader & AsyncDisposable> => openReader(data)

  it('all finish, spans are exact, no clock ran and no harness saw an error', async () => {
    const began = performance.now()
    await stall()
    await submit('g', count)
    for (const version of [1, 2]) {
      await midway(count)
      // By `drain` it would wait for generations that never end: there are none left.
      expect(await policy(version, 'pausing')).toMatchObject({ shelved: count, interrupted: 0, drained: 0 })
      const states = await trainer.ask<{ rollouts: readonly Json[] }>('POST', `/runs/${run}/resume`, {})
      expect(states.rollouts.map(({ state }) => state)).toEqual(Array(count).fill('shelved'))
      if (version === 2) await goOn()
      await policy(version, 'live')
    }
    expect(await settled('g')).toMatchObject({ state: 'settled', usable: count, members: count })
    await using stored = await reader()
    for (const { id } of await rolloutsOf('g')) {
      expect(await trainer.ask('GET', `/rollouts/${id}`)).toMatchObject({ end: 'completed', end_detail: 'exit 0' })
      const events = await stored.recorder.events({ rolloutId: id })
      expect(events.filter(({ kind }) => kind === 'taint')).toEqual([])
      expect(shelvedOf(events)).toEqual(['shelved 1', 'resumed 0', 'shelved 1', 'resumed 0'])
      expect(agentMs.get(id)).toBeLessThan(stageMs(events) - heldMs(events))
      await spansAreExact(stored, id)
    }
    expect(containersOf(run)).toEqual([])
    console.log(`${count} rollouts over two updates: ${((performance.now() - began) / 1000).toFixed(1)} s`)
  })

  it('a box that dies meanwhile is a fault of ours: no reward, and the slot is tried again', async () => {
    await stall()
    await submit('dies', 2)
    await midway(2)
    const [lost, other] = await rolloutsOf('dies')
    // What somebody asked for outlasts the update.
    await trainer.ask('POST', `/rollouts/${other?.id ?? ''}/shelve`, {})
    expect(await policy(3, 'pausing')).toMatchObject({ shelved: 1 })
    const docker = new Docker()
    const boxes = await docker.listContainers({ filters: { name: [lost?.id ?? 'none'] } })
    expect(boxes.length).toBeGreaterThan(0)
    await Promise.all(boxes.map(({ Id }) => docker.getContainer(Id).remove({ force: true })))
    await goOn()
    await policy(3, 'live')
    expect(await ended(lost?.id)).toMatchObject({ end: 'infra', reward: null })
    let again = await rolloutsOf('dies')
    while (again.length < 3) again = await rolloutsOf('dies')
    const retried = again.find(({ id }) => id !== lost?.id && id !== other?.id)
    expect(retried?.slot).toBe(lost?.slot)
    expect(await ended(retried?.id)).toMatchObject({ end: 'completed', reward: 0 })
    const resumed = await trainer.ask('POST', `/rollouts/${other?.id ?? ''}/resume`, {})
    expect(resumed).toEqual({ rollout_id: other?.id, state: 'resuming' })
    expect(await settled('dies')).toMatchObject({ state: 'settled', usable: 2 })
    expect(await ended(other?.id)).toMatchObject({ end: 'completed', reward: 0 })
  })

  it('nothing is left of them when Paddock is killed in an update; what became of them is told, and slots are tried again', async () => {
    await stall()
    await submit('killed', count)
    await midway(count)
    expect(await policy(4, 'pausing')).toMatchObject({ shelved: count })
    const owner = `${serving.ready.pid}:`
    expect((await leftBy(owner)).length).toBeGreaterThan(count)
    const shelved = await rolloutsOf('killed')
    serving.kill('SIGKILL')
    await serving.ended
    const killedAt = performance.now()
    while ((await leftBy(owner)).length > 0);
    const goneMs = performance.now() - killedAt
    expect(containersOf(run)).toEqual([])
    await goOn()
    await start()
    for (const { id } of shelved) {
      const told = { end: 'infra', end_detail: 'Paddock was stopped while the rollout was shelved', reward: null }
      expect(await trainer.ask('GET', `/rollouts/${id}`)).toMatchObject(told)
    }
    // Weights were being moved when it was killed: nothing is sampled before they are there.
    await policy(4, 'live')
    expect(await settled('killed')).toMatchObject({ state: 'settled', usable: count, members: count })
    console.log(`nothing left of ${shelved.length} shelved rollouts after ${(goneMs / 1000).toFixed(1)} s`)
  })

  /** The first answer came in three legs, each of the weights that there were; what the engine says it sampled is what is stored. */
  async function spansAreExact({ recorder }: StoreReader, rolloutId: string): Promise<void> {
    const [session] = await recorder.sessions({ rolloutId })
    const log = await recorder.session(session?.id ?? '')
    expect(log.calls.flatMap(({ commit }) => commit?.findings ?? [])).toEqual([])
    expect(log.calls.map(({ commit }) => commit?.outcome.kind)).toEqual(Array(calls).fill('complete'))
    const [first] = log.segments.filter(({ origin }) => origin === 'sampled')
    const legs = await Promise.all(['', '.2', '.3'].map((leg) => engine.generation(`${first?.callId ?? ''}${leg}`)))
    const told = legs.map(({ choices }) => choices[0]?.tokenIds ?? [])
    expect([...(first?.tokens ?? [])]).toEqual(told.flat())
    let at = 0
    const expected = told.flatMap((ids, leg) => {
      const start = at
      at += ids.length
      // Of a leg that was ended before its first token there is nothing to say.
      return ids.length === 0 ? [] : [[start, at, `w${leg}`, 'none']]
    })
    const spans = first?.policySpans.map(({ start, end, policy: by, mixing }) => [start, end, by.weightVersion, mixing])
    expect(spans).toEqual(expected)
    // Every sampled token trains, once.
    const { rows } = buildRows(log, { rolloutId, groupId: 'g', taskDigest: 't' })
    const sampled = log.segments.reduce((sum, one) => sum + (one.origin === 'sampled' ? one.tokens.length : 0), 0)
    expect(rows.reduce((sum, { mask }) => sum + mask.reduce((bits, bit) => bits + bit, 0), 0)).toBe(sampled)
  }
})
