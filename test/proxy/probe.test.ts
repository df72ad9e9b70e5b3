/** Probes: continuations of given ids, which no harness sees, recorded apart. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openaiEngine, type ProxyOptions, sglangEngine, vllmEngine } from '../../src/proxy/index.ts'
import { buildRows, promptOfCall, type SessionLog } from '../../src/trajectory/index.ts'
import { chat, sameTools, tidyScript } from './harnesses.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { startProxy, type TestEngine, type TestProxy, testStore } from './support.ts'

const rowOptions = { rolloutId: 'r', groupId: 'g', taskDigest: 't' }
const signal = new AbortController().signal

function asked(log: SessionLog, call: number, more: object = {}) {
  const callId = log.calls[call]?.intent.id ?? ''
  const path = promptOfCall(log, callId)
  if (path === null) throw new Error('no prompt')
  const ids = path.prompt
  return { of: callId, rolloutId: 'r', ids, model: null, k: 3, maxTokens: 12, temperature: 1, signal, ...more }
}

describe.each([
  { wire: 'vllm', model: 'scripted-hermes', adapter: vllmEngine },
  { wire: 'sglang', model: 'scripted-hermes', adapter: sglangEngine },
])('$wire', ({ wire, model, adapter }) => {
  let engine: TestEngine
  let paddock: TestProxy
  let store: Awaited<ReturnType<typeof testStore>>
  beforeAll(async () => {
    engine = await useEngine('--wire', wire, '--model', model)
    await engine.control('/scripts', tidyScript)
    store = await testStore()
    const own: Partial<ProxyOptions> = { engine: adapter({ url: engine.url }), recorder: store.recorder }
    paddock = await startProxy(engine.url, own)
  })
  afterAll(async () => {
    await paddock[Symbol.asyncDispose]()
    await store[Symbol.asyncDispose]()
  })

  it('sample behind the exact prompt of a call, and are recorded as what they are', async () => {
    const session = await paddock.open()
    await chat(session, { stream: false, tools: sameTools, model })
    const before = await session.log()
    const order = asked(before, 1)
    const answer = await paddock.proxy.probe(order)
    expect(answer.continuations.map(({ index }) => index)).toEqual([0, 1, 2])
    // The engine's own truth: it was asked with these ids and sampled those.
    const truth = await engine.generation(answer.callId)
    expect(truth.promptTokenIds).toEqual([...order.ids])
    for (const [at, { ids, logprobs, text }] of answer.continuations.entries()) {
      expect(ids).toEqual(truth.choices[at]?.tokenIds)
      for (const [place, logprob] of logprobs.entries())
        expect(logprob).toBeCloseTo(truth.choices[at]?.logprobs[place] ?? Number.NaN, 5)
      expect(ids.length).toBeGreaterThan(0)
      expect(text).not.toBe('')
    }
    const { weightVersion } = await paddock.proxy.scoreIds({ sequences: [order.ids], ifVersion: null })
    expect(answer).toMatchObject({ weightVersion, mixed: false, kind: wire === 'vllm' ? 'raw' : 'temperature' })
    // The harness's session knows nothing of it.
    expect(await session.log()).toEqual(before)
    const log = await paddock.recorder.session(answer.sessionId)
    expect(log.session).toMatchObject({ role: 'probe', rolloutId: 'r', labels: { 'probe.of': order.of } })
    expect(log.closedAt).not.toBeNull()
    const [call] = log.calls
    expect(call?.intent).toMatchObject({ id: answer.callId, callClass: 'probe', used: { n: 3, maxTokens: 12 } })
    expect(call?.commit).toMatchObject({ outcome: { kind: 'complete' }, findings: [] })
    const sampled = log.segments.filter(({ origin }) => origin === 'sampled')
    expect(sampled.map(({ tokens }) => [...tokens])).toEqual(answer.continuations.map(({ ids }) => ids))
    // Nothing of it trains, and every token of it is in one bucket.
    const tokens = sampled.reduce((sum, one) => sum + one.tokens.length, 0)
    const built = buildRows(log, { ...rowOptions, includeUntrainedRows: true, trainClasses: ['main', 'probe'] })
    expect(built).toEqual({ rows: [], unclean: 0, outside: { masked: {}, notExported: { probe: tokens } } })
  })

  it('an answer that cannot be true is recorded, and given to nobody', async () => {
    const session = await paddock.open()
    await chat(session, { stream: false, tools: sameTools, model })
    await engine.fault({ kind: 'wrong_usage', by: 1, times: 1 })
    const refused = { code: 'ENGINE_UNTRUSTED', data: { fault: 'count_mismatch' } }
    await expect(paddock.proxy.probe(asked(await session.log(), 0, { k: 1 }))).rejects.toMatchObject(refused)
    const [last] = (await paddock.recorder.sessions()).slice(-1)
    const { calls } = await paddock.recorder.session(last?.id ?? '')
    expect(calls[0]?.commit?.findings).toContain('count_mismatch')
  })

  it('of an engine that fails the error is told and recorded', async () => {
    const session = await paddock.open()
    await chat(session, { stream: false, tools: sameTools, model })
    const order = asked(await session.log(), 0, { maxTokens: 10_000_000 })
    await expect(paddock.proxy.probe(order)).rejects.toMatchObject({
      code: expect.stringMatching(/ENGINE_ERROR|CONTEXT_OVERFLOW/),
    })
    const [last] = (await paddock.recorder.sessions()).slice(-1)
    const { calls, closedAt } = await paddock.recorder.session(last?.id ?? '')
    expect(calls[0]?.commit?.outcome).toMatchObject({ kind: 'engine_error' })
    expect(closedAt).not.toBeNull()
  })

  it('a text is turned into ids by the engine', async () => {
    const ids = await paddock.proxy.textIds('\nAnswer:')
    expect(ids.length).toBeGreaterThan(1)
  })
})

it('calls of harnesses go first, and a probe waits through a pause for weights under whose salt it is asked', async () => {
  const engine = await useEngine()
  const paddock = await startProxy(engine.url, { limits: { maxInFlight: 1 } })
  try {
    await engine.control('/scripts', tidyScript)
    const session = await paddock.open()
    await chat(session, { stream: false, tools: sameTools })
    const log = await session.log()
    await engine.fault({
      kind: 'stall',
      at: 'mid_stream',
      token: 1,
      seconds: 600,
      count: 1,
      match: { session: session.id },
    })
    const order: string[] = []
    const told = (name: string) => () => order.push(name)
    const say = { model: 'scripted-hermes', messages: [{ role: 'user', content: 'Say hello.' }] }
    const held = session.post(say)
    while (paddock.proxy.stats().inFlight === 0) await new Promise(setImmediate)
    const probe = paddock.proxy.probe(asked(log, 0)).then(told('probe'))
    const later = session
      .post({ ...say, user: 'later' })
      .then((answer) => answer.text())
      .then(told('call'))
    while (paddock.proxy.stats().queued === 0) await new Promise(setImmediate)
    await fetch(`${engine.url}/control/faults`, { method: 'DELETE' })
    await (await held).text()
    await Promise.all([probe, later])
    expect(order).toEqual(['call', 'probe'])

    await paddock.proxy.pauseEngine({ mode: 'drain', cache: 'clear', timeoutMs: 300_000 })
    const waiting = paddock.proxy.probe(asked(log, 0))
    while (paddock.proxy.engineStatus().waiting === 0) await new Promise(setImmediate)
    await paddock.proxy.updateWeights({
      version: 'step-1',
      requests: [],
      mode: 'drain',
      cache: 'clear',
      timeoutMs: 300_000,
    })
    await paddock.proxy.resumeEngine()
    const answer = await waiting
    expect(answer).toMatchObject({ weightVersion: 'step-1', mixed: false })
    expect(await engine.generation(answer.callId)).toMatchObject({ cacheSalt: 'weights-step-1' })
  } finally {
    await paddock[Symbol.asyncDispose]()
  }
})

it('an engine that takes no ids is refused by name, and nothing is recorded', async () => {
  const engine = await useEngine('--wire', 'openai')
  await using store = await testStore()
  const paddock = await startProxy(engine.url, { engine: openaiEngine({ url: engine.url }), recorder: store.recorder })
  try {
    const ids = Int32Array.from([5, 6])
    const order = { of: 'c', rolloutId: 'r', ids, model: null, k: 1, maxTokens: 1, temperature: 1, signal }
    const refused = { code: 'ENGINE_INCAPABLE', message: expect.stringContaining('openai') }
    await expect(paddock.proxy.probe(order)).rejects.toMatchObject(refused)
    await expect(paddock.proxy.textIds('x')).rejects.toMatchObject(refused)
    expect(await paddock.recorder.sessions()).toEqual([])
  } finally {
    await paddock[Symbol.asyncDispose]()
  }
})
