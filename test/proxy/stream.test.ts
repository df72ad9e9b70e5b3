import { once } from 'node:events'
import { createServer } from 'node:http'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { beforeAll, describe, expect, it } from 'vitest'
import { vllmEngine } from '../../src/proxy/index.ts'
import type { Recorder } from '../../src/trajectory/index.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { useStore } from '../fixtures/use-store.ts'
import {
  hello,
  payloads,
  script,
  shellTool,
  startEngine,
  startProxy,
  type TestEngine,
  type TestSession,
} from './support.ts'

let engine: TestEngine

beforeAll(async () => {
  engine = await useEngine()
  await engine.control('/scripts', script('Count.', [{ say: 'one two three four five six seven eight nine ten' }]))
  await engine.control('/scripts', script('List the files.', [{ shell: 'ls -la' }, { say: 'Done.' }]))
})

const count = { model: 'scripted-hermes', messages: [{ role: 'user', content: 'Count.' }] }

/** A request whose response is looked at while it comes. */
class Watched {
  text = ''
  status: number | null = null
  readonly request
  private readonly waiting = new Set<() => void>()
  readonly closed: Promise<'end' | 'broken'>

  constructor(session: TestSession, body: object, headers: Record<string, string> = {}) {
    this.request = httpRequest(`${session.url}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${session.key}`, ...headers },
      agent: false,
    })
    this.closed = new Promise((resolve) => {
      this.request.on('error', () => resolve('broken'))
      this.request.on('response', (response: IncomingMessage) => {
        this.status = response.statusCode ?? 0
        response.on('error', () => resolve('broken'))
        response.on('data', (chunk: Buffer) => {
          this.text += chunk.toString()
          for (const look of this.waiting) look()
        })
        response.on('end', () => resolve('end'))
      })
    })
    this.request.end(JSON.stringify(body))
  }

  sees(text: string): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (this.text.includes(text)) resolve()
      }
      this.waiting.add(look)
      look()
    })
  }

  leave(): void {
    this.request.destroy()
  }
}

/** The recorder with a gate before one of its writes. */
function gated(
  recorder: Recorder,
  method: 'beginCall' | 'commitCall',
): { recorder: Recorder; reached: Promise<void>; open: () => void } {
  const reached = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const held = new Proxy(recorder, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (name !== method || typeof value !== 'function')
        return typeof value === 'function' ? value.bind(target) : value
      return async (argument: unknown) => {
        reached.resolve()
        await gate.promise
        await Reflect.apply(value, target, [argument])
      }
    },
  })
  return { recorder: held, reached: reached.promise, open: gate.resolve }
}

/** The error that a client was told: a body of its own before the first byte, the last event afterwards. */
function errorIn(text: string): unknown {
  return JSON.parse(text.slice(text.lastIndexOf('{"error"')))
}

describe('commit before it can be acted on', () => {
  it('lets no byte out before the intent is stored, while the engine works already', async () => {
    const store = await useStore()
    const { recorder, reached, open } = gated(store.recorder, 'beginCall')
    await using paddock = await startProxy(engine.url, { recorder })
    const session = await paddock.open()
    const watched = new Watched(session, { ...count, stream: true })
    await reached
    await engine.finished(1, session.id)
    // Another answer goes all the way from the engine to a client meanwhile: nothing is merely not read yet.
    await session.client.models.list()
    expect(watched.status).toBeNull()
    open()
    expect(await watched.closed).toBe('end')
    expect(watched.text).toContain('[DONE]')
  })

  it('streams the words and holds the finishing event until the answer is stored', async () => {
    const store = await useStore()
    const { recorder, reached, open } = gated(store.recorder, 'commitCall')
    await using paddock = await startProxy(engine.url, { recorder })
    const session = await paddock.open()
    const watched = new Watched(session, { ...count, stream: true })
    await reached
    await watched.sees('ten')
    expect(watched.text).not.toMatch(/"finish_reason":"|\[DONE\]/)
    open()
    await watched.closed
    expect(payloads(watched.text).at(-1)).toMatchObject({ choices: [{ finish_reason: 'stop' }] })
  })

  it('holds a whole answer until it is stored', async () => {
    const store = await useStore()
    const { recorder, reached, open } = gated(store.recorder, 'commitCall')
    await using paddock = await startProxy(engine.url, { recorder })
    const session = await paddock.open()
    const watched = new Watched(session, count)
    await reached
    expect(watched.status).toBeNull()
    open()
    expect(await watched.closed).toBe('end')
    expect(watched.status).toBe(200)
  })

  it('tells a client when the store fails, and lets nothing actionable out', async () => {
    const store = await useStore()
    const broken = new Proxy(store.recorder, {
      get(target, name) {
        if (name === 'commitCall') return () => Promise.reject(new Error('disk full'))
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    await using paddock = await startProxy(engine.url, { recorder: broken })
    const session = await paddock.open()
    const streamed = new Watched(session, { ...count, stream: true })
    await streamed.closed
    expect(streamed.text).not.toMatch(/"finish_reason":"|\[DONE\]/)
    expect(errorIn(streamed.text)).toMatchObject({ error: { type: 'server_error' } })
    const whole = new Watched(session, count)
    await whole.closed
    expect(whole.status).toBe(500)
    expect(paddock.proxy.sessionStats(session.id).taints).toHaveLength(2)
  })
})

describe('when somebody goes away', () => {
  it.each(['finish', 'abort'] as const)('the policy %s decides what becomes of the engine', async (onDisconnect) => {
    const slow = await useEngine('--tokens-per-second', '40')
    await slow.control('/scripts', script('Count.', [{ say: 'one two three four five six seven eight nine ten' }]))
    await using paddock = await startProxy(slow.url)
    const session = await paddock.open({ policy: { onDisconnect } })
    const watched = new Watched(session, { ...count, stream: true })
    await watched.sees('two')
    watched.leave()
    await paddock.event((event) => event.type === 'call')
    const log = await session.log()
    const upstream = onDisconnect === 'finish' ? 'finished' : 'aborted'
    expect(log.calls[0]?.commit?.outcome).toEqual({ kind: 'client_gone', upstream })
    expect(log.calls[0]?.delivery).toBe('unknown')
    const sampled = log.segments.find((segment) => segment.origin === 'sampled')
    const message = log.calls[0]?.commit?.choices[0]?.message ?? ''
    expect(message.includes('nine')).toBe(onDisconnect === 'finish')
    expect(sampled?.tokens.length).toBeGreaterThan(1)
    expect(paddock.proxy.sessionStats(session.id).taints).toEqual([])
  })

  it.each(['before_headers', 'after_headers', 'mid_token', 'before_finish'])(
    'an engine that dies %s is told and recorded',
    async (at) => {
      await using paddock = await startProxy(engine.url)
      const session = await paddock.open()
      // Always: where not a byte of an answer came, the proxy asks once more.
      await engine.fault({ kind: 'die', at, token: 4, count: 0, match: { session: session.id } })
      const watched = new Watched(session, { ...count, stream: true })
      expect(await watched.closed).toBe('end')
      const told = watched.status === 200 ? payloads(watched.text).at(-1) : JSON.parse(watched.text)
      expect(told).toMatchObject({ error: { code: 'ENGINE_DIED', message: expect.stringContaining('Fix: ') } })
      expect(watched.text).not.toContain('[DONE]')
      const log = await session.log()
      expect(log.calls[0]?.commit?.outcome).toMatchObject({ kind: 'engine_error', code: 'ENGINE_DIED' })
      expect(Buffer.from(log.calls[0]?.commit?.reply ?? []).toString()).toBe(watched.text)
      expect(log.events).toMatchObject([{ kind: 'taint', cause: 'ENGINE_DIED', callId: log.calls[0]?.intent.id }])
      if (at === 'mid_token') expect(log.segments.filter((s) => s.origin === 'sampled')).toHaveLength(1)
    },
  )

  it('the official client gets an error from a broken stream, not a short answer', async () => {
    await using paddock = await startProxy(engine.url)
    const session = await paddock.open()
    await engine.fault({ kind: 'die', at: 'mid_token', token: 4, match: { session: session.id } })
    const stream = session.client.chat.completions.stream({ ...hello })
    await expect(stream.finalChatCompletion()).rejects.toThrow(/engine closed the connection/i)
  })

  it('a killed engine process is told on every open stream', async () => {
    const victim = await startEngine('--tokens-per-second', '20')
    await using paddock = await startProxy(victim.url)
    const session = await paddock.open()
    const open = [1, 2, 3].map(() => new Watched(session, { ...hello, stream: true, n: 1 }))
    await Promise.all(open.map((watched) => watched.sees('content')))
    await victim.kill()
    for (const watched of open) {
      expect(await watched.closed).toBe('end')
      expect(watched.text).toContain('ENGINE_DIED')
    }
    expect((await session.log()).calls.map((call) => call.commit?.outcome.kind)).toEqual(Array(3).fill('engine_error'))
  })

  it('closing a session ends its calls and keeps what came', async () => {
    const slow = await useEngine('--tokens-per-second', '20')
    await using paddock = await startProxy(slow.url)
    const session = await paddock.open()
    const watched = new Watched(session, { ...hello, stream: true })
    await watched.sees('"content":"S')
    await paddock.proxy.closeSession(session.id)
    await watched.closed
    expect(watched.text).toContain('SESSION_CLOSED')
    const log = await session.log()
    expect(log.calls[0]?.commit?.outcome).toEqual({ kind: 'client_gone', upstream: 'aborted' })
    expect(log.segments.some((segment) => segment.origin === 'sampled' && segment.tokens.length > 0)).toBe(true)
  })
})

describe('when the engine is silent', () => {
  it('keeps a stream alive with comments, which are not part of the reply', async () => {
    const slow = await useEngine('--first-token-ms', '300')
    await using paddock = await startProxy(slow.url, { limits: { keepAliveMs: 40 } })
    const session = await paddock.open()
    const watched = new Watched(session, { ...hello, stream: true })
    await watched.sees(': keep-alive')
    expect(watched.text.startsWith(': keep-alive')).toBe(true)
    await watched.closed
    const reply = Buffer.from((await session.log()).calls[0]?.commit?.reply ?? []).toString()
    expect(reply).not.toContain('keep-alive')
    expect(reply).toBe(watched.text.replaceAll(': keep-alive\n\n', ''))
  })

  it('gives an engine up that stalls', async () => {
    await using paddock = await startProxy(engine.url, { limits: { stallMs: 1000 } })
    const session = await paddock.open()
    await engine.fault({ kind: 'stall', at: 'mid_stream', token: 3, seconds: 20, match: { session: session.id } })
    const watched = new Watched(session, { ...count, stream: true })
    await watched.closed
    expect(payloads(watched.text).at(-1)).toMatchObject({ error: { code: 'ENGINE_TIMEOUT' } })
    await engine.fault({ kind: 'stall', at: 'before_first_byte', seconds: 20, match: { session: session.id } })
    const whole = new Watched(session, count)
    await whole.closed
    expect(whole.status).toBe(504)
    expect(paddock.proxy.sessionStats(session.id).taints).toEqual(['ENGINE_TIMEOUT', 'ENGINE_TIMEOUT'])
  })
})

describe('engines that lose ids while they stream', () => {
  it('asks an old vLLM for a whole answer and gives the client its stream', async () => {
    const old = vllmEngine({ url: engine.url, version: '0.11.2' })
    await using paddock = await startProxy(engine.url, { engine: old })
    const session = await paddock.open()
    const messages = [{ role: 'user' as const, content: 'List the files.' }]
    const answer = await session.client.chat.completions
      .stream({ model: 'scripted-hermes', messages, tools: [shellTool], stream_options: { include_usage: true } })
      .finalChatCompletion()
    expect(answer.choices[0]?.finish_reason).toBe('tool_calls')
    const [call] = answer.choices[0]?.message.tool_calls ?? []
    expect(call?.type === 'function' && JSON.parse(call.function.arguments)).toMatchObject({ command: 'ls -la' })
    const log = await session.log()
    const truth = await engine.generation(log.calls[0]?.intent.id)
    expect(truth.stream).toBe(false)
    expect([...(log.segments.at(-1)?.tokens ?? [])]).toEqual(truth.choices[0]?.tokenIds)
  })

  it('says so where ids were dropped in a stream', async () => {
    await using paddock = await startProxy(engine.url)
    const session = await paddock.open()
    await engine.fault({ kind: 'drop_token_ids', every: 3, match: { session: session.id } })
    await (await session.post({ ...count, stream: true })).text()
    const [call] = (await session.log()).calls
    expect(call?.commit?.findings).toEqual(['count_mismatch', 'logprob_count_mismatch'])
  })

  it.each([
    [{ kind: 'bad_logprob', value: 'NaN', token: 2 }, ['nan_logprob'], 2],
    [{ kind: 'bad_logprob', value: 'null', token: 2 }, ['nan_logprob'], 2],
    [{ kind: 'bad_logprob', value: '-9999.0', token: 2 }, ['floored_logprob'], 1],
    [{ kind: 'null_logprobs' }, ['missing_logprobs'], 4],
    [{ kind: 'wrong_usage', by: 2 }, ['count_mismatch'], 0],
  ])('flags %o', async (fault, findings, flag) => {
    await using paddock = await startProxy(engine.url)
    const session = await paddock.open()
    for (const stream of [true, false]) {
      await engine.fault({ ...fault, match: { session: session.id } })
      await (await session.post({ ...count, stream })).text()
    }
    const log = await session.log()
    for (const call of log.calls) {
      expect(call.commit?.findings).toEqual(findings)
      const sampled = log.segments.find((s) => s.callId === call.intent.id && s.origin === 'sampled')
      if (flag === 4) expect(sampled?.logprobs).toBeNull()
      if (flag === 2) expect([sampled?.flags?.[1], Number.isNaN(sampled?.logprobs?.[1])]).toEqual([2, true])
      if (flag === 1) expect(sampled?.flags?.[1]).toBe(1)
    }
  })
})

describe('engines that give no ids', () => {
  it('records text, says that the ids are missing, and invents none', async () => {
    const plain = await useEngine('--wire', 'openai')
    const { openaiEngine } = await import('../../src/proxy/index.ts')
    await using paddock = await startProxy(plain.url, { engine: openaiEngine({ url: `${plain.url}/v1` }) })
    const session = await paddock.open()
    for (const stream of [false, true]) expect((await session.post({ ...hello, stream })).status).toBe(200)
    await paddock.proxy.drain()
    const log = await session.log()
    expect(log.segments).toEqual([])
    for (const call of log.calls) {
      expect(call.commit?.findings).toEqual(expect.arrayContaining(['missing_ids', 'missing_prompt_ids']))
      expect(call.commit?.choices[0]).toMatchObject({ segmentId: null, message: expect.stringContaining('Scripted') })
    }
  })

  it('reads an engine error that comes inside a stream', async () => {
    const fake = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: {"id":"x","choices":[{"index":0,"delta":{"content":"He"},"finish_reason":null}]}\n\n')
      response.end(
        'data: {"error":{"message":"CUDA error","type":"InternalServerError","code":500}}\n\ndata: [DONE]\n\n',
      )
    })
    fake.listen(0, '127.0.0.1')
    await once(fake, 'listening')
    const address = fake.address()
    await using paddock = await startProxy(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`)
    const session = await paddock.open()
    const text = await (await session.post({ ...hello, stream: true })).text()
    expect(errorIn(text)).toMatchObject({
      error: { code: 'ENGINE_ERROR', message: expect.stringContaining('CUDA error') },
    })
    expect(text).not.toContain('[DONE]')
    fake.close()
    fake.closeAllConnections()
  })
})
