import { once } from 'node:events'
import { createServer } from 'node:http'
import httpProxy from 'http-proxy'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sglangEngine, vllmEngine } from '../../src/proxy/index.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { payloads, script, startProxy, type TestEngine, type TestProxy } from '../proxy/support.ts'
import { ask, expectFaithful, findings, forks, startScripted } from './support.ts'

const story = [{ role: 'user', content: 'Tell me a story.' }]

describe.each([
  ['vLLM, derender', [], (url: string) => vllmEngine({ url })],
  ['SGLang, parsers', ['--wire', 'sglang', '--no-chat-ids'], (url: string) => sglangEngine({ url })],
] as const)('a derenderer that fails: %s', (_name, flags, adapter) => {
  let engine: TestEngine
  let paddock: TestProxy
  beforeAll(async () => {
    engine = await startScripted('scripted-hermes', ...flags)
    paddock = await startProxy(engine.url, { engine: adapter(engine.url) })
  })
  afterAll(async () => {
    await paddock[Symbol.asyncDispose]()
  })

  const habits = { model: 'scripted-hermes', more: { tools: undefined } }

  it('is asked again, and the answer is as ever', async () => {
    const session = await paddock.open({ policy: { strategy: 'splice' } })
    await engine.fault({ kind: 'derender_fails', match: { session: session.id }, count: 2 })
    const message = await ask(session, story, habits)
    expect(message['content']).toMatch(/^Once upon a time/)
    const log = await session.log()
    expect(findings(log)).toEqual([])
    await expectFaithful(log, engine)
  })

  it('loses no sampled id: they are stored, accounted for, and the harness gets a typed error', async () => {
    const session = await paddock.open({ policy: { strategy: 'splice' } })
    await engine.fault({ kind: 'derender_fails', match: { session: session.id }, count: 3 })
    const answer = await session.post({ model: 'scripted-hermes', messages: story })
    expect(answer.status).toBe(502)
    expect(JSON.parse(await answer.text()).error.code).toBe('ENGINE_DERENDER_FAILED')
    const log = await session.log()
    expect(log.calls[0]?.commit?.outcome).toMatchObject({ kind: 'engine_error', code: 'ENGINE_DERENDER_FAILED' })
    expect(findings(log)).toEqual(['derender_failed'])
    const truth = await engine.generation(log.calls[0]?.intent.id)
    const sampled = log.segments.find((segment) => segment.origin === 'sampled')
    expect([...(sampled?.tokens ?? [])]).toEqual(truth.choices[0]?.tokenIds)
    expect([...(sampled?.logprobs ?? [])]).toEqual(truth.choices[0]?.logprobs.map(Math.fround))
    expect(paddock.proxy.sessionStats(session.id).taints).toEqual(['ENGINE_DERENDER_FAILED'])
    // The harness asks again, and its conversation goes on.
    expect((await ask(session, story, habits))['content']).toMatch(/^Once upon a time/)
    expect(forks(await session.log())).toEqual([])
  })
})

it('a derenderer that fails in the middle of a stream: what was told and what waited are stored', async () => {
  const engine = await startScripted('scripted-hermes', '--tokens-per-second', '400')
  await using paddock = await startProxy(engine.url)
  const session = await paddock.open({ policy: { strategy: 'splice' } })
  await engine.fault({ kind: 'derender_fails', match: { session: session.id }, count: 0 })
  const answer = await session.post({ model: 'scripted-hermes', messages: story, stream: true })
  expect(answer.status).toBe(200)
  expect(payloads(await answer.text()).at(-1)).toMatchObject({ error: { code: 'ENGINE_DERENDER_FAILED' } })
  const log = await session.log()
  expect(findings(log)).toContain('derender_failed')
  const truth = await engine.generation(log.calls[0]?.intent.id)
  const sampled = log.segments.find((segment) => segment.origin === 'sampled')?.tokens ?? new Int32Array(0)
  expect(sampled.length).toBeGreaterThan(0)
  expect([...sampled]).toEqual(truth.choices[0]?.tokenIds.slice(0, sampled.length))
})

describe.each([
  ['vLLM', [], (url: string) => vllmEngine({ url })],
  ['SGLang', ['--wire', 'sglang'], (url: string) => sglangEngine({ url, streamsIds: true })],
] as const)('a bound beyond the context: %s', (_name, flags, adapter) => {
  it('is refused under auto as the chat route refuses it, and never cut without a word', async () => {
    const engine = await useEngine('--max-model-len', '700', ...flags)
    await using paddock = await startProxy(engine.url, { engine: adapter(engine.url) })
    const asked = { model: 'scripted-hermes', messages: story, max_tokens: 690 }
    const told = await Promise.all(
      (['record', 'auto'] as const).map(async (strategy) => {
        const session = await paddock.open({ policy: { strategy } })
        const answer = await session.post(asked)
        const [call] = (await session.log()).calls
        return { status: answer.status, text: await answer.text(), asked: call?.intent.asked.maxTokens }
      }),
    )
    expect(told[0]).toMatchObject({
      status: 400,
      text: expect.stringContaining('context_length_exceeded'),
      asked: 690,
    })
    expect(told[1]).toEqual(told[0])
  })
})

describe.each([
  ['vLLM, derender', [], (url: string) => vllmEngine({ url })],
  ['SGLang, sglext', ['--wire', 'sglang'], (url: string) => sglangEngine({ url, streamsIds: true })],
  ['SGLang, buffered', ['--wire', 'sglang', '--no-sglext'], (url: string) => sglangEngine({ url })],
] as const)('a slow engine: %s', (name, flags, adapter) => {
  it('the client hears keep-alives before the first token, and tokens as they come', async () => {
    const engine = await useEngine('--first-token-ms', '600', '--tokens-per-second', '60', ...flags)
    await engine.control('/scripts', script('Count.', [{ say: 'one two three four five six seven eight nine ten' }]))
    await using paddock = await startProxy(engine.url, {
      engine: adapter(engine.url),
      limits: { keepAliveMs: 100 },
    })
    const session = await paddock.open({ policy: { strategy: 'splice' } })
    const body = { model: 'scripted-hermes', messages: [{ role: 'user', content: 'Count.' }], stream: true }
    const text = await (await session.post(body)).text()
    expect(text).toMatch(/^:/)
    const words = payloads(text).filter((event) => JSON.stringify(event).includes('"content":"'))
    expect(words.length > 3).toBe(name !== 'SGLang, buffered')
    const log = await session.log()
    expect(findings(log)).toEqual([])
    await expectFaithful(log, engine)
  })
})

/** The scripted engine, and how many steps of a derender it was asked for. */
async function countedSteps(
  tokensPerSecond: number,
): Promise<AsyncDisposable & { engine: TestEngine; url: string; steps: () => number }> {
  const engine = await useEngine('--tokens-per-second', String(tokensPerSecond))
  const forward = httpProxy.createProxyServer({ target: engine.url })
  let steps = 0
  const between = createServer((request, response) => {
    if (request.url?.endsWith('/derender') === true) steps += 1
    forward.web(request, response)
  })
  between.listen(0, '127.0.0.1')
  await once(between, 'listening')
  const address = between.address()
  return {
    engine,
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
    steps: () => steps,
    async [Symbol.asyncDispose]() {
      forward.close()
      between.close()
      between.closeAllConnections()
    },
  }
}

const manyWords = 'many words that follow each other '.repeat(40)

it('derenders long prompts in larger steps, so that their ids are not sent again for each token', async () => {
  await using counted = await countedSteps(2000)
  const { engine, url } = counted
  await engine.control('/scripts', script('Talk.', [{ say: manyWords }]))
  await using paddock = await startProxy(url)
  const session = await paddock.open({ policy: { strategy: 'splice' } })
  const probing = counted.steps()
  const messages = [{ role: 'user', content: `${'lorem ipsum dolor '.repeat(9000)}\nTalk.` }]
  const text = await (await session.post({ model: 'scripted-hermes', messages, stream: true })).text()
  expect(text).toContain('[DONE]')
  const log = await session.log()
  const [prompt, sampled] = log.segments
  expect(prompt?.tokens.length).toBeGreaterThan(20_000)
  // 1 step begins, 1 ends; the others bring at least one token per 2,048 ids of the prompt.
  const least = Math.floor((prompt?.tokens.length ?? 0) / 2048)
  expect(counted.steps() - probing).toBeLessThanOrEqual(2 + Math.ceil((sampled?.tokens.length ?? 0) / least))
  await expectFaithful(log, engine)
})

it('derenders in larger steps beside many other streams', async () => {
  const counted = await countedSteps(100)
  const { engine, url } = counted
  const paddock = await startProxy(url)
  try {
    await engine.control('/scripts', script('Talk.', [{ say: manyWords }]))
    const body = { model: 'scripted-hermes', messages: [{ role: 'user', content: 'Talk.' }], stream: true }
    const open = () => paddock.open({ policy: { strategy: 'splice' } })
    for (let other = 0; other < 15; other += 1) {
      const waiting = await open()
      await engine.fault({ kind: 'stall', at: 'mid_stream', token: 4, seconds: 600, match: { session: waiting.id } })
      expect((await waiting.post(body)).status).toBe(200)
    }
    const session = await open()
    const before = counted.steps()
    expect(await (await session.post(body)).text()).toContain('[DONE]')
    const log = await session.log()
    const sampled = log.segments.find(({ origin }) => origin === 'sampled')
    // 1 step begins, 1 ends; sixteen streams make steps of four tokens. Each of the others still tells what it has.
    const own = 2 + Math.ceil((sampled?.tokens.length ?? 0) / 4)
    expect(counted.steps() - before).toBeLessThanOrEqual(own + 15 * 4)
    await expectFaithful(log, engine)
  } finally {
    await counted[Symbol.asyncDispose]()
    await paddock[Symbol.asyncDispose]()
  }
})

describe.each([
  ['vLLM', [], (url: string) => vllmEngine({ url })],
  ['SGLang', ['--wire', 'sglang'], (url: string) => sglangEngine({ url, streamsIds: true })],
] as const)('what an engine gets wrong: %s', (_name, flags, adapter) => {
  let engine: TestEngine
  let paddock: TestProxy
  beforeAll(async () => {
    engine = await startScripted('scripted-hermes', ...flags)
    paddock = await startProxy(engine.url, { engine: adapter(engine.url) })
  })
  afterAll(async () => {
    await paddock[Symbol.asyncDispose]()
  })

  const habits = { model: 'scripted-hermes', more: { tools: undefined } }

  it('a prompt that the engine cut: what it was conditioned on stands in the tree, the fork says so', async () => {
    const session = await paddock.open({ policy: { strategy: 'splice' } })
    const first = await ask(session, story, habits)
    await engine.fault({ kind: 'truncate_prompt', keep: 24, match: { session: session.id } })
    await ask(session, [...story, first, { role: 'user', content: 'And then?' }], habits)
    const log = await session.log()
    expect(forks(log)).toEqual(['truncated'])
    await expectFaithful(log, engine)
  })

  it.each([
    ['record', false],
    ['record', true],
    ['splice', false],
    ['splice', true],
  ] as const)('a logprob that is no number is flagged, the others stay: %s, streamed: %s', async (strategy, stream) => {
    const session = await paddock.open({ policy: { strategy } })
    await engine.fault({ kind: 'bad_logprob', value: 'NaN', token: 3, match: { session: session.id } })
    await ask(session, story, { ...habits, stream })
    const log = await session.log()
    expect(findings(log)).toEqual(['nan_logprob'])
    const sampled = log.segments.find((segment) => segment.origin === 'sampled')
    const truth = await engine.generation(log.calls[0]?.intent.id)
    const logprobs = [...(sampled?.logprobs ?? [])]
    expect([...(sampled?.tokens ?? [])]).toEqual(truth.choices[0]?.tokenIds)
    expect(logprobs.map((value, at) => (at === 2 ? Number.isNaN(value) : value))).toEqual(
      truth.choices[0]?.logprobs.map((value, at) => (at === 2 ? true : Math.fround(value))),
    )
  })

  it('ids that a stream lost are missing, and nothing stands in for them', async () => {
    const session = await paddock.open({ policy: { strategy: 'record' } })
    await engine.fault({ kind: 'drop_token_ids', every: 1, match: { session: session.id } })
    await ask(session, story, { ...habits, stream: true })
    const log = await session.log()
    expect(findings(log)).toContain('missing_ids')
    expect(log.segments.filter((segment) => segment.origin === 'sampled')).toEqual([])
  })
})
