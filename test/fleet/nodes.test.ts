/** Pauses and new weights over a coordinator and a node, each with a proxy of its own before the same engine. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WeightsLoop } from '../../src/cli/node/weights-loop.ts'
import { newId } from '../../src/core/index.ts'
import { openaiEngine, type PauseOrder, type WeightsOrder } from '../../src/proxy/index.ts'
import { EngineOverUpdates, FollowWeights, NodeJobs, type NodesAnswered, Shelving } from '../../src/rollout/index.ts'
import { openStore } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { script, type TestProxy } from '../proxy/support.ts'
import { ask, count, Engines, inFlight, orders, sampling, words } from './support.ts'

/** It names its weights, freezes and aborts. */
const able = new Engines()
/** It has no route for weights: they are what somebody says. */
const plain = new Engines(['--wire', 'openai'], (url) => openaiEngine({ url }))
beforeAll(async () => {
  await Promise.all([able.start(1), plain.start(1)])
  await able.at(0).control('/scripts', script('Talk.', [{ say: `${words} ${words}` }]))
})
afterAll(() => Promise.all([able, plain].map((engines) => engines[Symbol.asyncDispose]())))

const order = (more: Partial<PauseOrder> = {}): PauseOrder => ({
  mode: 'drain',
  cache: 'clear',
  timeoutMs: 300_000,
  ...more,
})
const weights = (version: string, more: Partial<WeightsOrder> = {}): WeightsOrder => ({
  ...order(),
  version,
  requests: [],
  ...more,
})

interface Two extends AsyncDisposable {
  readonly here: TestProxy
  readonly there: TestProxy
  /** What whoever moves weights asks. */
  readonly engine: EngineOverUpdates
  readonly told: NodesAnswered[]
}

/** A coordinator whose one node holds a job, and hears of weights in this process. */
async function two(engines: Engines): Promise<Two> {
  const directory = tempDir()
  const store = await openStore(directory)
  const [here, there] = [await engines.proxy(), await engines.proxy()]
  const told: NodesAnswered[] = []
  const jobs = new NodeJobs({
    store,
    leaseMs: 600_000,
    onFailure: () => undefined,
    onAnswered: (answered) => told.push(answered),
  })
  jobs.weights.serve()
  const over = (proxy: TestProxy['proxy'], nodes: NodeJobs['weights']) =>
    new EngineOverUpdates({ proxy, nodes, shelving: new Shelving(), onMissed: () => undefined })
  const engine = over(here.proxy, jobs.weights)
  const session = await jobs.open('token', { name: 'far', labels: [] })
  await store.queue.enqueue('work', [{ id: newId(), payload: null }])
  await store.queue.claim('work', session, { requestId: newId(), limit: 1, capacity: {} })
  const alone = new NodeJobs({ store, leaseMs: 600_000, onFailure: () => undefined })
  const follow = new FollowWeights({ proxy: there.proxy, engine: over(there.proxy, alone.weights) })
  const gone = new AbortController()
  const loop = await WeightsLoop.begin(
    {
      follow,
      sessions: () => ({ now: session, also: [] }),
      client: {
        weights: (id, said, also) => jobs.weightsFor('token', id, { also, said, waitMs: 20_000, signal: gone.signal }),
      },
    },
    jobs.weights.now,
  )
  return {
    here,
    there,
    engine,
    told,
    async [Symbol.asyncDispose]() {
      gone.abort()
      await loop[Symbol.asyncDispose]()
      jobs.close()
      alone.close()
      await Promise.all([here, there].map((one) => one[Symbol.asyncDispose]()))
      await store.close()
    },
  }
}

/** Weights before and after each call of a session. */
async function versions(session: { log: TestProxyLog }): Promise<unknown> {
  const { calls } = await session.log()
  return calls.map(({ commit }) => [commit?.weightVersionBefore, commit?.weightVersionAfter])
}
type TestProxyLog = Awaited<ReturnType<TestProxy['open']>>['log']

describe('weights that only somebody says', () => {
  it('are those of every call of a node: it ends before they change, and the next begins behind', async () => {
    await using both = await two(plain)
    const { engine, there, told } = both
    expect(await engine.updateWeights(weights('one'))).toMatchObject({
      version: 'one',
      nodes: { answered: 1, slowest: { node: 'far' }, passed: [] },
    })
    const session = await there.open()
    await plain.hold(session)
    const running = ask(session)
    await inFlight(there, 1)
    const pausing = engine.pauseEngine(order())
    // The node's own gate is closed, and what runs there is waited for.
    while (there.proxy.engineStatus().paused === null) await new Promise((resolve) => setImmediate(resolve))
    const waiting = ask(session, { user: 'later' })
    while (there.proxy.engineStatus().waiting === 0) await new Promise((resolve) => setImmediate(resolve))
    expect(there.proxy.engineStatus().replicas[0]?.inFlight).toBe(1)
    await plain.release()
    expect(await pausing).toMatchObject({ drained: 0, nodes: { answered: 1 } })
    await running
    await engine.updateWeights(weights('two'))
    expect(there.proxy.engineStatus()).toMatchObject({ paused: 'drain', weightVersion: 'two', waiting: 1 })
    await engine.resumeEngine()
    await waiting
    expect(await versions(session)).toEqual([
      ['one', 'one'],
      ['two', 'two'],
    ])
    expect(told.every(({ passed }) => passed.length === 0)).toBe(true)
  })

  it('stay as they were where what runs on a node does not end in time: it is named, and all go on', async () => {
    await using both = await two(plain)
    const { engine, here, there } = both
    await engine.updateWeights(weights('one'))
    const session = await there.open()
    await plain.hold(session)
    const running = ask(session)
    await inFlight(there, 1)
    const late = engine.updateWeights(weights('two', { timeoutMs: 30 }))
    await expect(late).rejects.toMatchObject({ code: 'PAUSE_TIMED_OUT', message: expect.stringContaining('node far') })
    expect(here.proxy.engineStatus()).toMatchObject({ paused: null, weightVersion: 'one' })
    expect(there.proxy.engineStatus()).toMatchObject({ paused: null, weightVersion: 'one' })
    await plain.release()
    await running
    await ask(session, { user: 'next' })
    expect(await versions(session)).toEqual([
      ['one', 'one'],
      ['one', 'one'],
    ])
  })
})

describe('engines that freeze and abort', () => {
  it('are frozen and let go on by the coordinator alone; what a node has there is of both weights, and its time is no time of the agent', async () => {
    await using both = await two(able)
    const { engine, there } = both
    await engine.updateWeights(weights('old'))
    const session = await there.open()
    await able.hold(session)
    const asked = ask(session, { ...count, messages: [{ role: 'user', content: 'Talk.' }] })
    await inFlight(there, 1)
    const before = (await orders(able.at(0))).length
    const moved = engine.updateWeights(weights('new', { mode: 'keep' }))
    expect(await moved).toMatchObject({ kept: 0, nodes: { answered: 1 } })
    const told = (await orders(able.at(0))).slice(before)
    expect(told.filter((one) => one.startsWith('/pause'))).toHaveLength(1)
    expect(told.filter((one) => one.startsWith('/resume'))).toHaveLength(1)
    expect(told.filter((one) => one.startsWith('/reset_prefix_cache'))).toHaveLength(1)
    await able.release()
    expect(await asked).toContain(words)
    expect(await versions(session)).toEqual([['old', 'new']])
    expect((await session.log()).events).toMatchObject([{ kind: 'engine_wait' }])
  })

  it('a node ends what can be gone on with, and goes on with it under the new weights', async () => {
    await using both = await two(able)
    const { engine, there } = both
    await engine.updateWeights(weights('before'))
    const session = await there.open({ policy: { strategy: 'splice' } })
    await able.hold(session)
    const asked = ask(session, { messages: [{ role: 'user', content: 'Talk.' }] })
    await sampling(able, there)
    await engine.updateWeights(weights('after', { mode: 'abort-resubmit' }))
    expect(await asked).toContain(words)
    const { segments } = await session.log()
    const spans = segments.filter(({ origin }) => origin === 'sampled').flatMap(({ policySpans }) => policySpans)
    expect(spans.map(({ policy, mixing }) => [policy.weightVersion, mixing])).toEqual([
      ['before', 'none'],
      ['after', 'none'],
    ])
  })
})

it('an adapter is what new calls of the coordinator and of a node name, with no pause; the old one goes when a node has heard', async () => {
  const directory = tempDir()
  await using both = await two(able)
  const { engine, here, there } = both
  const put = (name: string) =>
    engine.updateWeights(weights(`version-${name}`, { adapter: { name, path: join(directory, name) } }))
  const names = async () => {
    const { data } = (await (await fetch(`${able.at(0).url}/v1/models`)).json()) as { data: { id: string }[] }
    return data.map(({ id }) => id)
  }
  for (const name of ['first', 'second']) await mkdir(join(directory, name))
  const near = await here.open()
  const far = await there.open()
  expect(await put('first')).toMatchObject({ adapter: { name: 'first' }, out: [], shelved: 0, nodes: { answered: 1 } })
  await able.hold(far)
  const running = ask(far)
  await inFlight(there, 1)
  expect(await put('second')).toMatchObject({ nodes: { answered: 1, passed: [] } })
  await Promise.all([ask(near, { user: 'later' }), ask(far, { user: 'later' })])
  expect(there.proxy.engineStatus()).toMatchObject({ paused: null, adapter: 'second' })
  await able.release()
  await running
  const spans = async (session: { log: TestProxyLog }) =>
    (await session.log()).segments
      .flatMap(({ policySpans }) => policySpans)
      .map(({ policy, mixing }) => [policy.adapter, policy.weightVersion, mixing])
      .toSorted((a, b) => String(a).localeCompare(String(b)))
  expect(await spans(near)).toEqual([['second', 'version-second', 'none']])
  expect(await spans(far)).toEqual([
    ['first', 'version-first', 'none'],
    ['second', 'version-second', 'none'],
  ])
  expect(await names()).toContain('second')
})
