import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useEngine } from '../fixtures/use-engine.ts'
import { hello, payloads, script, startProxy, type TestEngine, type TestProxy, type TestSession } from './support.ts'

let engine: TestEngine
let paddock: TestProxy

beforeAll(async () => {
  engine = await useEngine('--tokens-per-second', '60')
  await engine.control('/scripts', script('Count.', [{ say: 'one two three four five six' }]))
  paddock = await startProxy(engine.url)
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
})

const count = { model: 'scripted-hermes', messages: [{ role: 'user' as const, content: 'Count.' }] }
const retry = { 'x-stainless-retry-count': '1' }

/** Starts a stream and leaves when the first words have come. */
async function leaveMidStream(session: TestSession, body: object = { ...count, stream: true }): Promise<void> {
  const out = httpRequest(`${session.url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${session.key}` },
    agent: false,
  })
  out.on('error', () => {})
  out.end(JSON.stringify(body))
  const [response] = (await once(out, 'response')) as [IncomingMessage]
  response.on('error', () => {})
  for await (const chunk of response) if (String(chunk).includes('one')) break
  out.destroy()
}

describe('retries do not fork', () => {
  it('identical bodies without a retry mark are siblings, also at the same time', async () => {
    const session = await paddock.open()
    const body = { ...hello, seed: 1 }
    const texts = await Promise.all(
      [session.post(body), session.post(body)].map(async (answer) => (await answer).text()),
    )
    await (await session.post(body)).text()
    const { calls } = await session.log()
    expect(calls).toHaveLength(3)
    expect(new Set(calls.map((call) => call.intent.requestDigest)).size).toBe(1)
    expect(calls.every((call) => call.intent.retryOf === null && !call.superseded)).toBe(true)
    expect(new Set(texts.map((text) => JSON.parse(text).id)).size).toBe(2)
  })

  it('a client that comes back joins the answer that still runs', async () => {
    const session = await paddock.open()
    await leaveMidStream(session)
    const text = await (await session.post({ ...count, stream: true })).text()
    const { calls } = await session.log()
    expect(calls).toHaveLength(1)
    expect(calls[0]?.commit?.outcome).toEqual({ kind: 'complete' })
    expect(Buffer.from(calls[0]?.commit?.reply ?? []).toString()).toBe(text)
    const words = payloads(text).flatMap((event) =>
      (event['choices'] as { delta: { content?: string } }[]).map((c) => c.delta.content ?? ''),
    )
    expect(words.join('')).toBe('one two three four five six')
  })

  it('a client that hangs up and asks again at once joins it too', async () => {
    const session = await paddock.open()
    const { hostname, port } = new URL(session.url)
    const body = JSON.stringify(count)
    const head = `POST /s/${session.id}/v1/chat/completions HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${session.key}`
    const request = `${head}\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`
    // Both are connected: the second request is read as soon as the first one's hang-up.
    const [first, second] = [connect(Number(port), hostname), connect(Number(port), hostname)]
    await Promise.all([once(first, 'connect'), once(second, 'connect')])
    first.write(request)
    while (paddock.proxy.stats().inFlight === 0) await new Promise((resolve) => setImmediate(resolve))
    first.destroy()
    second.write(request)
    let text = ''
    for await (const bytes of second) text += String(bytes)
    expect(text).toContain('six')
    expect((await session.log()).calls).toHaveLength(1)
  })

  it('a client that comes back gets the finished answer that it never got, in the form it asks for now', async () => {
    const session = await paddock.open()
    await leaveMidStream(session)
    await paddock.event((event) => event.type === 'call' && event.sessionId === session.id)
    const answer = JSON.parse(await (await session.post({ ...count, metadata: { try: '2' } })).text())
    expect(answer).toMatchObject({
      object: 'chat.completion',
      choices: [{ message: { role: 'assistant', content: 'one two three four five six' }, finish_reason: 'stop' }],
      usage: { completion_tokens: expect.any(Number) },
    })
    const { calls } = await session.log()
    expect(calls).toHaveLength(1)
    expect(calls[0]?.delivery).toBe('sent')
    // Delivered now: the next identical request is a new sample.
    await (await session.post(count)).text()
    expect((await session.log()).calls).toHaveLength(2)
  })

  it('a whole answer is replayed as a stream with the same words', async () => {
    const session = await paddock.open()
    const first = JSON.parse(await (await session.post(count)).text())
    const again = payloads(await (await session.post({ ...count, stream: true }, retry)).text())
    const content = again.map(
      (event) => (event['choices'] as { delta: { content?: string } }[])[0]?.delta.content ?? '',
    )
    expect(content.join('')).toBe(first.choices[0].message.content)
    expect(again.at(-1)).toMatchObject({ choices: [{ finish_reason: 'stop' }] })
    expect((await session.log()).calls).toHaveLength(1)
  })

  it('the same idempotency key is the same request, another key another one', async () => {
    const session = await paddock.open()
    const ask = async (key: string) =>
      JSON.parse(await (await session.post(hello, { 'idempotency-key': key })).text()).id
    const [a, again, b] = [await ask('a'), await ask('a'), await ask('b')]
    expect(again).toBe(a)
    expect(b).not.toBe(a)
    expect((await session.log()).calls).toHaveLength(2)
  })

  it('a retry after an abort is a new call, and the partial answer is kept and marked', async () => {
    const session = await paddock.open({ policy: { onDisconnect: 'abort' } })
    await leaveMidStream(session)
    await paddock.event((event) => event.type === 'call' && event.sessionId === session.id)
    await (await session.post({ ...count, stream: true })).text()
    const { calls, segments } = await session.log()
    expect(calls.map((call) => call.superseded)).toEqual([true, false])
    expect(calls[1]?.intent.retryOf).toBe(calls[0]?.intent.id)
    expect(segments.some((s) => s.callId === calls[0]?.intent.id && s.origin === 'sampled')).toBe(true)
  })

  it("the official client's own retry after an engine failure gets one answer", async () => {
    const session = await paddock.open()
    // Twice: the proxy itself asks once more where not a byte of an answer came.
    await engine.fault({ kind: 'die', at: 'before_headers', count: 2, match: { session: session.id } })
    const client = new OpenAI({ apiKey: session.key, baseURL: session.url, maxRetries: 2 })
    const answer = await client.chat.completions.create(count)
    expect(answer.choices[0]?.message.content).toContain('six')
    const { calls } = await session.log()
    expect(calls.map((call) => call.commit?.outcome.kind)).toEqual(['engine_error', 'complete'])
    expect(calls[1]?.intent).toMatchObject({ retryOf: calls[0]?.intent.id, lineage: { retryCount: 1 } })
  })

  it('marks an answer as echoed when a later request contains it, however it was re-serialised', async () => {
    const session = await paddock.open()
    const first = await session.client.chat.completions.create(count)
    const content = [{ type: 'text' as const, text: first.choices[0]?.message.content ?? '' }]
    const messages = [
      ...count.messages,
      { role: 'assistant' as const, content },
      { role: 'user' as const, content: 'More.' },
    ]
    await session.client.chat.completions.create({ ...count, messages })
    const { calls } = await session.log()
    expect(calls.map((call) => call.delivery)).toEqual(['echoed', 'sent'])
  })
})
