/** Pauses and weight updates: what waits, what goes on, what is sampled by whom. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PauseOrder, WeightsOrder } from '../../src/proxy/index.ts'
import { payloads, script, shellTool, type TestProxy, type TestSession } from '../proxy/support.ts'
import {
  ask,
  count,
  Engines,
  expectLegs,
  inFlight,
  journal,
  legs,
  orders,
  sampledOf,
  sampling,
  words,
} from './support.ts'

const engines = new Engines()
const long = `${words} and then once more, because an update takes its time: ${words}.`
const command = `printf '%s' "${words}" > "a file" && cat "a file"`
beforeAll(async () => {
  await engines.start(2)
  for (const engine of engines.running) {
    await engine.control('/scripts', script('Talk.', [{ say: long }]))
    await engine.control(
      '/scripts',
      script('Act.', [{ think: 'I write it down.' }, { shell: command }, { say: 'Done.' }]),
    )
  }
})
afterAll(() => engines[Symbol.asyncDispose]())

let version = 0
const nextVersion = (): string => `v${(version += 1)}`
const order = (more: Partial<PauseOrder> = {}): PauseOrder => ({
  mode: 'drain',
  cache: 'clear',
  timeoutMs: 300_000,
  ...more,
})
const weights = (more: Partial<WeightsOrder> = {}): WeightsOrder => ({
  ...order(),
  version: nextVersion(),
  requests: [],
  ...more,
})

const talk = { model: 'scripted-hermes', messages: [{ role: 'user' as const, content: 'Talk.' }], stream: true }
const act = { ...talk, messages: [{ role: 'user' as const, content: 'Act.' }], tools: [shellTool] }

/** A streamed call that stands still in the middle of its answer. */
async function underWay(
  paddock: TestProxy,
  session: TestSession,
  body: object,
  times = 1,
): Promise<{ readonly text: Promise<string> }> {
  await engines.hold(session, times)
  const answer = await session.post(body)
  const text = answer.text()
  await sampling(engines, paddock)
  return { text }
}

const contentOf = (stream: string): string =>
  payloads(stream)
    .flatMap((payload) => payload['choices'] as { delta: { content?: string } }[])
    .map(({ delta }) => delta.content ?? '')
    .join('')

const argumentsOf = (stream: string): string =>
  payloads(stream)
    .flatMap((payload) => payload['choices'] as { delta: { tool_calls?: { function: { arguments?: string } }[] } }[])
    .flatMap(({ delta }) => delta.tool_calls ?? [])
    .map((call) => call.function.arguments ?? '')
    .join('')

const splice = { policy: { strategy: 'splice' as const } }

describe('a pause', () => {
  it('drains what runs, keeps new calls waiting with keep-alives, and lets them go on', async () => {
    await using paddock = await engines.proxy({ limits: { keepAliveMs: 20 } })
    const session = await paddock.open()
    const running = await underWay(paddock, session, talk)
    const pausing = paddock.proxy.pauseEngine(order())
    await engines.release()
    expect(await pausing).toMatchObject({ mode: 'drain', interrupted: 0, drained: 1, kept: 0 })
    expect(contentOf(await running.text)).toBe(long)
    const { response } = await session.post({ ...count, stream: true })
    let text = ''
    await new Promise<void>((resolve) => {
      response.on('data', (chunk: Buffer) => {
        text += String(chunk)
        if (text.includes(': ')) resolve()
      })
    })
    expect(paddock.proxy.engineStatus()).toMatchObject({ paused: 'drain', waiting: 1 })
    expect(payloads(text)).toEqual([])
    await expect(paddock.proxy.pauseEngine(order())).rejects.toMatchObject({ code: 'ENGINE_PAUSED' })
    await paddock.proxy.resumeEngine()
    await new Promise((resolve) => response.once('end', resolve))
    expect(contentOf(text)).toBe(words)
    const log = await session.log()
    expect(log.calls.map((call) => call.commit?.outcome.kind)).toEqual(['complete', 'complete'])
    const [wait] = log.events
    expect(wait).toMatchObject({ kind: 'engine_wait', callId: log.calls[1]?.intent.id })
    const waitedMs = wait?.kind === 'engine_wait' ? wait.waitedMs : 0
    expect(waitedMs).toBeGreaterThan(0)
    // The agent's clock leaves out all of it.
    expect(paddock.proxy.sessionStats(session.id).modelWaitMs).toBeGreaterThanOrEqual(waitedMs)
    expect(log.events.some(({ kind }) => kind === 'taint')).toBe(false)
  })

  it('that is not done in time is none: everything goes on', async () => {
    await using paddock = await engines.proxy()
    const session = await paddock.open()
    const running = await underWay(paddock, session, talk)
    const paused = paddock.proxy.pauseEngine(order({ timeoutMs: 20 }))
    await expect(paused).rejects.toMatchObject({ code: 'PAUSE_TIMED_OUT' })
    expect(paddock.proxy.engineStatus()).toMatchObject({ paused: null, waiting: 0 })
    await engines.release()
    expect(await ask(session)).toContain(words)
    expect(contentOf(await running.text)).toBe(long)
  })

  it('a client that leaves while it waits is forgotten, and closing the proxy ends the wait', async () => {
    await using paddock = await engines.proxy({ limits: { keepAliveMs: 20 } })
    const session = await paddock.open({ policy: { onDisconnect: 'abort' } })
    await paddock.proxy.pauseEngine(order())
    const gone = await session.post({ ...count, stream: true })
    const other = session.post({ ...count, user: 'other' })
    while (paddock.proxy.engineStatus().waiting < 2) await new Promise((resolve) => setImmediate(resolve))
    gone.response.destroy()
    while (paddock.proxy.engineStatus().waiting > 1) await new Promise((resolve) => setImmediate(resolve))
    await paddock.proxy.close()
    expect((await other).status).toBe(503)
  })
})

describe('new weights with abort-resubmit', () => {
  it.each([true, false])('go on in the same answer, stream %s: ids exact, spans of two versions', async (stream) => {
    await using paddock = await engines.proxy()
    const session = await paddock.open(splice)
    await paddock.proxy.updateWeights(weights())
    await engines.hold(session)
    const asked = session
      .post({ ...talk, stream, ...(stream ? { stream_options: { include_usage: true } } : {}) })
      .then((answer) => answer.text())
    await sampling(engines, paddock)
    const updated = await paddock.proxy.updateWeights(weights({ mode: 'abort-resubmit' }))
    expect(updated).toMatchObject({ interrupted: 1, drained: 0, cacheIsolated: true })
    const text = await asked
    expect(stream ? contentOf(text) : JSON.parse(text).choices[0].message.content).toBe(long)
    const log = await session.log()
    const all = await expectLegs(engines, log, 2)
    expect(sampledOf(log).policySpans.map(({ mixing }) => mixing)).toEqual(['none', 'none'])
    expect(all.map((leg) => leg.choices[0]?.finishReason)).toEqual(['abort', 'stop'])
    expect(log.calls[0]?.commit).toMatchObject({ findings: [], outcome: { kind: 'complete' } })
    const usage = stream ? payloads(text).at(-1)?.['usage'] : JSON.parse(text).usage
    expect(usage).toMatchObject({ completion_tokens: sampledOf(log).tokens.length })
  })

  it('leave a tool call whole', async () => {
    await using paddock = await engines.proxy()
    const session = await paddock.open(splice)
    const running = await underWay(paddock, session, act)
    await paddock.proxy.updateWeights(weights({ mode: 'abort-resubmit' }))
    expect(JSON.parse(argumentsOf(await running.text))).toEqual({ command })
    await expectLegs(engines, await session.log(), 2)
  })

  it('ask for what is left of max_tokens', async () => {
    await using paddock = await engines.proxy()
    const session = await paddock.open(splice)
    const running = await underWay(paddock, session, { ...talk, max_tokens: 24 })
    await paddock.proxy.updateWeights(weights({ mode: 'abort-resubmit' }))
    const text = await running.text
    expect(payloads(text).flatMap((one) => one['choices'] as { finish_reason: string | null }[])).toContainEqual(
      expect.objectContaining({ finish_reason: 'length' }),
    )
    const log = await session.log()
    await expectLegs(engines, log, 2)
    expect(sampledOf(log).tokens).toHaveLength(24)
  })

  it('twice in one answer: three legs', async () => {
    await using paddock = await engines.proxy()
    const session = await paddock.open(splice)
    const running = await underWay(paddock, session, talk, 2)
    await paddock.proxy.updateWeights(weights({ mode: 'abort-resubmit' }))
    await sampling(engines, paddock)
    await paddock.proxy.updateWeights(weights({ mode: 'abort-resubmit' }))
    expect(contentOf(await running.text)).toBe(long)
    await expectLegs(engines, await session.log(), 3)
  })

  it('wait for every answer that could not be gone on with as the same sample', async () => {
    await using paddock = await engines.proxy()
    const cases: readonly (readonly [object, object])[] = [
      [{ seed: 3 }, splice],
      [{ stop: ['sixteen and'] }, splice],
      [{ presence_penalty: 0.5 }, splice],
      [{ n: 2 }, splice],
      [{ logit_bias: { '5': 1 } }, splice],
      [{ tools: [shellTool], tool_choice: 'required' }, splice],
      [{ brand_new_member: true }, splice],
      // The chat route: nobody outside the engine can go on with its message.
      [{}, {}],
    ]
    const asked = await Promise.all(
      cases.map(async ([more, open]) => {
        const session = await paddock.open(open)
        await engines.hold(session, 0)
        return { session, answer: session.post({ ...talk, stream: false, ...more }) }
      }),
    )
    await inFlight(paddock, cases.length)
    const pausing = paddock.proxy.pauseEngine(order({ mode: 'abort-resubmit' }))
    await engines.release()
    expect(await pausing).toMatchObject({ interrupted: 0, drained: cases.length })
    await paddock.proxy.resumeEngine()
    for (const { session, answer } of asked) {
      expect((await answer).status).toBe(200)
      const log = await session.log()
      expect(log.calls[0]?.commit?.outcome.kind).toBe('complete')
      expect(await legs(engines, log.calls[0]?.intent.id)).toHaveLength(1)
    }
  })
})

describe('pitfall 20: new weights while generations are frozen', () => {
  it.each([
    ['clear', 'none'],
    ['keep', 'kv_mixed'],
  ] as const)('cache %s: spans as the engine tells them, the later one %s', async (cache, mixing) => {
    await using paddock = await engines.proxy()
    const session = await paddock.open(splice)
    await paddock.proxy.updateWeights(weights())
    const running = await underWay(paddock, session, talk)
    const name = nextVersion()
    expect(await paddock.proxy.updateWeights(weights({ mode: 'keep', cache, version: name }))).toMatchObject({
      kept: 1,
    })
    await engines.release()
    expect(contentOf(await running.text)).toBe(long)
    const log = await session.log()
    await expectLegs(engines, log, 1)
    const { policySpans } = sampledOf(log)
    expect(policySpans.map((span) => span.mixing)).toEqual(['none', mixing])
    const asked = (await Promise.all(engines.running.map(orders))).flat()
    expect(asked).toContain(`/pause?mode=keep&clear_cache=${cache === 'clear'}`)
    expect(asked.includes('/reset_prefix_cache')).toBe(true)
    expect(log.events).toMatchObject([{ kind: 'engine_wait' }])
    // What comes later shares no prefix with what the old weights computed.
    await ask(session)
    const lines = (await Promise.all(engines.running.map(journal))).flat()
    expect(lines.map(({ cacheSalt }) => cacheSalt)).toContain(`weights-${name}`)
  })

  it('whatever the weights are called, and whatever salt the harness has, engines take the salt', async () => {
    await using paddock = await engines.proxy()
    const session = await paddock.open()
    const names = [`${nextVersion()}@2`, `step/${nextVersion()}`, 'x'.repeat(200)]
    for (const version of names) {
      await paddock.proxy.updateWeights(weights({ version }))
      for (const more of [{}, { cache_salt: 'its/own@salt' }, { cache_salt: 'another' }]) await ask(session, more)
    }
    const lines = (await Promise.all(engines.running.map(journal))).flat()
    const salts = lines.flatMap(({ cacheSalt }) => cacheSalt ?? []).slice(-9)
    expect(new Set(salts).size).toBe(9)
  })

  it('on the chat route, which tells no spans: one span that says mixed', async () => {
    await using paddock = await engines.proxy()
    const session = await paddock.open()
    const before = nextVersion()
    const after = nextVersion()
    await paddock.proxy.updateWeights(weights({ version: before }))
    const running = await underWay(paddock, session, talk)
    await paddock.proxy.updateWeights(weights({ mode: 'keep', version: after }))
    await engines.release()
    await running.text
    await ask(session)
    const log = await session.log()
    const spans = log.segments.filter(({ origin }) => origin === 'sampled').map(({ policySpans }) => policySpans)
    expect(spans[0]).toMatchObject([{ start: 0, policy: { weightVersion: after }, mixing: 'mixed' }])
    expect(spans[1]).toMatchObject([{ start: 0, policy: { weightVersion: after }, mixing: 'none' }])
    expect(log.calls.map(({ commit }) => [commit?.weightVersionBefore, commit?.weightVersionAfter])).toEqual([
      [before, after],
      [after, after],
    ])
  })
})

describe('new weights', () => {
  it('that a trainer puts in by itself are seen at the end of the call', async () => {
    await using paddock = await engines.proxy()
    const session = await paddock.open()
    const running = await underWay(paddock, session, talk)
    const name = nextVersion()
    for (const { url } of engines.running) {
      const body = JSON.stringify({ new_version: name })
      await fetch(`${url}/update_weight_version`, { method: 'POST', body })
    }
    await engines.release()
    await running.text
    const log = await session.log()
    expect(log.calls[0]?.commit).toMatchObject({ weightVersionAfter: name })
    expect(sampledOf(log).policySpans).toMatchObject([{ policy: { weightVersion: name }, mixing: 'mixed' }])
  })

  it('are posted to every replica by its own routes, inside a pause of the trainer too', async () => {
    await using paddock = await engines.proxy()
    const requests = [
      { path: '/start_weight_update', body: {} },
      { path: '/update_weights', body: { update_info: {} } },
    ]
    await paddock.proxy.pauseEngine(order({ mode: 'keep' }))
    const name = nextVersion()
    const outcome = await paddock.proxy.updateWeights(weights({ version: name, requests }))
    expect(outcome.replicas.map(({ weightVersion }) => weightVersion)).toEqual([name, name])
    expect(paddock.proxy.engineStatus()).toMatchObject({ paused: 'keep', weightVersion: name, weightUpdates: 1 })
    for (const asked of await Promise.all(engines.running.map(orders))) {
      expect(asked).toEqual(expect.arrayContaining(['/start_weight_update', '/update_weights']))
    }
    await paddock.proxy.resumeEngine()
    expect(await ask(await paddock.open())).toContain(words)
  })

  it('that a replica refuses are an error, and generation goes on', async () => {
    await using paddock = await engines.proxy()
    const requests = [{ path: '/update_weights', body: {} }]
    const refused = paddock.proxy.updateWeights(weights({ requests }))
    await expect(refused).rejects.toMatchObject({ code: 'WEIGHTS_REFUSED' })
    expect(paddock.proxy.engineStatus().paused).toBe(null)
    expect(await ask(await paddock.open())).toContain(words)
  })

  it('that a replica missed keep it out until it has them', async () => {
    await using paddock = await engines.proxy()
    await engines.at(1).kill()
    await paddock.event((event) => event.type === 'engine' && event.what === 'ejected')
    const name = nextVersion()
    await paddock.proxy.updateWeights(weights({ version: name }))
    await engines.revive(1)
    await paddock.event((event) => event.type === 'engine' && event.what === 'stale')
    for (let index = 0; index < 3; index += 1) await ask(await paddock.open())
    expect(await journal(engines.at(1))).toEqual([])
    await paddock.proxy.updateWeights(weights({ version: name }))
    expect(paddock.proxy.engineStatus().replicas.map(({ state }) => state)).toEqual(['serving', 'serving'])
    await ask(await paddock.open())
    expect(await journal(engines.at(1))).toHaveLength(1)
  })
})
