/** Replicas that die, lie and come back. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startEngine, type TestProxy } from '../proxy/support.ts'
import { ask, count, Engines, homeOf, journal, words } from './support.ts'

const engines = new Engines()
beforeAll(() => engines.start(2))
afterAll(() => engines[Symbol.asyncDispose]())

const states = (paddock: TestProxy): string[] => paddock.proxy.engineStatus().replicas.map(({ state }) => state)
const ofEngine = (paddock: TestProxy, what: string) =>
  paddock.event((event) => event.type === 'engine' && event.what === what)

describe('a replica that is gone', () => {
  it('is ejected, its sessions are answered elsewhere, and it is taken back when its health route answers', async () => {
    await using paddock = await engines.proxy()
    const sessions = [await paddock.open(), await paddock.open()]
    for (const session of sessions) await ask(session)
    await engines.at(1).kill()
    for (const session of sessions) expect(await ask(session)).toContain(words)
    await ofEngine(paddock, 'ejected')
    expect(states(paddock)).toEqual(['serving', 'ejected'])
    await engines.revive(1)
    await ofEngine(paddock, 'readmitted')
    expect(states(paddock)).toEqual(['serving', 'serving'])
    // It has the fewest sessions now: the next one is its.
    await ask(await paddock.open())
    expect(await journal(engines.at(1))).toHaveLength(1)
    for (const session of sessions) {
      const { calls } = await session.log()
      expect(calls.map((call) => call.commit?.outcome.kind)).toEqual(['complete', 'complete'])
    }
    expect(paddock.events.filter(({ type }) => type === 'taint')).toEqual([])
  })

  it('is not missed while another one fails too: the last one that serves is never ejected', async () => {
    await using paddock = await engines.proxy()
    const session = await paddock.open()
    await engines.at(0).kill()
    await engines.at(1).kill()
    const refused = await session.post(count)
    expect(refused.status).toBe(502)
    expect(JSON.parse(await refused.text())).toMatchObject({ error: { code: 'ENGINE_UNREACHABLE' } })
    expect(states(paddock).filter((state) => state === 'serving')).toHaveLength(1)
    // Whichever comes back is asked at once: a call is never refused without a try.
    await engines.revive(0)
    expect(await ask(session)).toContain(words)
    await engines.revive(1)
  })

  it('and comes back with another model gets no calls', async () => {
    await using paddock = await engines.proxy()
    await engines.at(1).kill()
    await ofEngine(paddock, 'ejected')
    const stranger = await startEngine('--port', new URL(engines.at(1).url).port, '--model', 'scripted-llama')
    try {
      await ofEngine(paddock, 'foreign')
      for (let index = 0; index < 3; index += 1) await ask(await paddock.open())
      expect(await journal(stranger)).toEqual([])
    } finally {
      await stranger.kill()
      await engines.revive(1)
    }
  })
})

describe('questions to the engine', () => {
  it('are answered by a replica that serves: models, counts, what it can do', async () => {
    await using paddock = await engines.proxy()
    await engines.at(0).kill()
    try {
      await ofEngine(paddock, 'ejected')
      const session = await paddock.open({ policy: { strategy: 'auto' } })
      await ask(session)
      expect((await session.log()).calls[0]?.intent.strategy).toBe('splice')
      const headers = { authorization: `Bearer ${session.key}`, 'content-type': 'application/json' }
      expect((await fetch(`${session.url}/models`, { headers })).status).toBe(200)
      const body = JSON.stringify({ ...count, max_tokens: 5 })
      const counted = await fetch(`${session.url}/messages/count_tokens`, { method: 'POST', headers, body })
      expect(await counted.json()).toMatchObject({ input_tokens: expect.any(Number) })
    } finally {
      await engines.revive(0)
    }
  })
})

describe('pitfall 22: before the first byte of an answer', () => {
  it('a dead connection is tried anew, on the same replica', async () => {
    await using paddock = await engines.proxy()
    const session = await paddock.open()
    await ask(session)
    const home = engines.at(await homeOf(engines, session))
    await home.fault({ kind: 'die', at: 'before_headers' })
    for (const stream of [false, true]) expect(await ask(session, { stream })).toContain(stream ? 'data: ' : words)
    expect(await journal(home)).toHaveLength(3)
    expect(
      paddock.proxy
        .engineStatus()
        .replicas.map(({ retries }) => retries)
        .toSorted((a, b) => a - b),
    ).toEqual([0, 1])
    expect((await session.log()).calls).toHaveLength(3)
  })

  it('a replica that dies on fresh connections too leaves the call to one other, and that is the last try', async () => {
    await using paddock = await engines.proxy()
    for (const engine of engines.running) await engine.fault({ kind: 'die', at: 'before_headers', count: 0 })
    const session = await paddock.open()
    const refused = await session.post(count)
    expect(JSON.parse(await refused.text())).toMatchObject({ error: { code: 'ENGINE_DIED' } })
    expect(paddock.proxy.engineStatus().replicas.map(({ requests }) => requests)).toEqual([2, 2])
  })

  it('one that answers 500 again and again is ejected, and its answers are told as they are', async () => {
    await using paddock = await engines.proxy({ fleet: { ejectAfter: 2, ejectMs: 60_000, healthMs: 60_000 } })
    const session = await paddock.open()
    await ask(session)
    const home = engines.at(await homeOf(engines, session))
    await home.fault({ kind: 'http_error', status: 500, count: 0 })
    const statuses = []
    for (let index = 0; index < 3; index += 1) statuses.push((await session.post(count)).status)
    expect(statuses).toEqual([500, 500, 200])
  })
})

describe('after the first byte of an answer', () => {
  it.each(['after_headers', 'mid_token'])('an engine that dies %s is told; nothing is asked again', async (at) => {
    await using paddock = await engines.proxy()
    for (const engine of engines.running) await engine.fault({ kind: 'die', at, token: 4 })
    const session = await paddock.open()
    const answer = await session.post({ ...count, stream: true })
    expect(await answer.text()).toContain('ENGINE_DIED')
    expect(
      paddock.proxy
        .engineStatus()
        .replicas.map(({ requests }) => requests)
        .toSorted((a, b) => a - b),
    ).toEqual([0, 1])
  })
})
