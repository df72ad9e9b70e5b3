/** Routes beside chat that clients use: recorded as what they are, never a part of the conversation, never trained. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import type OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useEngine } from '../fixtures/use-engine.ts'
import { hello, payloads, rawPost, script, startProxy, type TestEngine, type TestProxy } from './support.ts'

let engine: TestEngine
let paddock: TestProxy
beforeAll(async () => {
  engine = await useEngine()
  paddock = await startProxy(engine.url)
  await engine.control('/scripts', script('Say hello.', [{ say: 'Hello there.' }]))
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
})

const model = 'scripted-hermes'
const asked = { model, prompt: 'Once upon', max_tokens: 6, seed: 1 }

describe('completions', () => {
  it('are passed on as they are and recorded beside the conversation', async () => {
    const session = await paddock.open({ policy: { strategy: 'auto' } })
    const first = await session.client.chat.completions.create(hello)
    const told = await session.client.completions.create(asked)
    const count = told.usage?.completion_tokens
    expect(count).toBeGreaterThan(3)
    expect(told.object).toBe('text_completion')
    let streamed = ''
    for await (const chunk of await session.client.completions.create({ ...asked, stream: true })) {
      expect(chunk.choices).toHaveLength(1)
      streamed += chunk.choices[0]?.text
    }
    expect(streamed).toBe(told.choices[0]?.text)
    const messages = [...hello.messages, first.choices[0]?.message, { role: 'user', content: 'Again.' }]
    expect((await session.post({ model, messages })).status).toBe(200)
    const log = await session.log()
    expect(log.calls.map(({ intent }) => [intent.dialect, intent.callClass])).toEqual([
      ['chat', 'main'],
      ['completions', 'completion'],
      ['completions', 'completion'],
      ['chat', 'main'],
    ])
    for (const call of log.calls.slice(1, 3)) {
      expect(JSON.parse(Buffer.from(call.intent.body).toString())).toMatchObject(asked)
      expect(call.commit).toMatchObject({ outcome: { kind: 'complete' }, findings: [], forks: [], promptLeaf: null })
      expect(call.commit?.choices).toMatchObject([
        { segmentId: null, claimedTokens: count, finishReason: told.choices[0]?.finish_reason },
      ])
      expect(call.intent.asked.maxTokens).toBe(6)
    }
    // The conversation goes on as if nothing had been asked between.
    expect(log.calls[3]?.commit?.forks).toEqual([])
    expect(new Set(log.segments.map(({ callId }) => callId)).size).toBe(2)
    expect(paddock.proxy.sessionStats(session.id)).toMatchObject({ calls: 4, answered: 2 })
  })

  it('come again to a client that asks again, in either form, and are sampled once', async () => {
    const session = await paddock.open()
    const body = { ...asked, prompt: 'There was', logprobs: 0, n: 2 }
    const told = JSON.parse(await (await raw(session, 'completions', body)).text())
    const again = { 'x-stainless-retry-count': '1' }
    const events = payloads(await (await raw(session, 'completions', { ...body, stream: true }, again)).text())
    expect(events).toHaveLength(1)
    expect(events[0]?.['choices']).toEqual(told.choices)
    expect((await session.log()).calls).toHaveLength(1)

    const stream = { ...asked, prompt: 'And then', logprobs: 0, stream: true, stream_options: { include_usage: true } }
    const pieces = payloads(await (await raw(session, 'completions', stream)).text())
    expect(pieces.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: expect.any(Number) } })
    const { stream: _streamed, stream_options: _options, ...plain } = stream
    const whole = JSON.parse(await (await raw(session, 'completions', plain, again)).text())
    const choices = pieces.flatMap((piece) => piece['choices'] as { text: string; logprobs: { tokens: string[] } }[])
    expect(whole.choices[0].text).toBe(choices.map(({ text }) => text).join(''))
    expect(whole.choices[0].logprobs.tokens).toEqual(choices.flatMap(({ logprobs }) => logprobs.tokens))
    expect(whole.usage).toEqual(pieces.at(-1)?.['usage'])
    expect((await session.log()).calls).toHaveLength(2)
  })

  it("follow the session's model, pins and budget", async () => {
    const session = await paddock.open({
      policy: { model, pin: { maxTokens: 3 }, budget: { maxCalls: null, maxSampledTokens: 5, maxWallMs: null } },
    })
    const told = await session.client.completions.create({ ...asked, model: 'text-davinci-003' })
    expect(told.usage?.completion_tokens).toBe(3)
    await session.client.completions.create({ ...asked, seed: 2 })
    const refused = await raw(session, 'completions', { ...asked, seed: 3 })
    expect([refused.status, JSON.parse(await refused.text()).error.code]).toEqual([429, 'BUDGET_EXHAUSTED'])
    const [call] = (await session.log()).calls
    expect([call?.intent.asked.maxTokens, call?.intent.used.maxTokens]).toEqual([6, 3])
  })

  it('that break off are told and recorded as such', async () => {
    const session = await paddock.open()
    await engine.fault({ kind: 'die', at: 'mid_token', token: 2, match: { session: session.id } })
    const answer = await raw(session, 'completions', { ...asked, stream: true })
    expect(payloads(await answer.text()).at(-1)).toMatchObject({ error: { code: 'ENGINE_DIED' } })
    expect((await session.log()).calls[0]?.commit?.outcome).toMatchObject({ kind: 'engine_error', code: 'ENGINE_DIED' })
  })

  it('that the engine refuses are told as it refuses them', async () => {
    const session = await paddock.open()
    const answer = await raw(session, 'completions', { model, max_tokens: 1 })
    expect(answer.status).toBe(400)
    expect(await answer.text()).toContain('prompt')
    expect((await raw(session, 'completions', '{')).status).toBe(400)
    expect((await session.log()).calls).toHaveLength(1)
  })
})

it('embeddings are recorded as what they are', async () => {
  const vector = { object: 'embedding', index: 0, embedding: [0.5, -0.25] }
  const server = createServer((request, response) => {
    const known = request.method === 'POST' && request.url === '/v1/embeddings'
    response.writeHead(known ? 200 : 404, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify(known ? { object: 'list', data: [vector], model: 'e', usage: { prompt_tokens: 4 } } : {}),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  await using proxy = await startProxy(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`)
  const session = await proxy.open()
  const told = await session.client.embeddings.create({ model: 'e', input: 'hi', encoding_format: 'float' })
  expect(told.data).toEqual([vector])
  const log = await session.log()
  expect(log.calls.map(({ intent }) => intent.callClass)).toEqual(['embedding'])
  expect(log.calls[0]?.commit).toMatchObject({ outcome: { kind: 'complete' }, choices: [], claimedPromptTokens: 4 })
  expect(log.segments).toEqual([])
  expect(proxy.proxy.sessionStats(session.id)).toMatchObject({ calls: 1, answered: 0, sampledTokens: 0 })
  server.close()
  server.closeAllConnections()
})

describe('models', () => {
  const retrieve = (client: OpenAI, id: string) => client.models.retrieve(id)

  it('answer by every name that generation takes', async () => {
    const session = await paddock.open({ policy: { model } })
    for (const alias of ['gpt-4o', 'Qwen/Qwen3-8B', 'qwen2.5:7b', 'claude@2025+x', 'mein Modell (ü)', model]) {
      expect(await retrieve(session.client, alias)).toMatchObject({ id: alias, object: 'model' })
      expect((await session.post({ ...hello, model: alias })).status).toBe(200)
      const asked = `${session.url}beta/models/${encodeURI(alias)}:generateContent`
      const body = JSON.stringify({ contents: [{ parts: [{ text: 'Say hello.' }] }] })
      const answer = await fetch(asked, { method: 'POST', body, headers: { 'x-goog-api-key': session.key } })
      expect([alias, answer.status]).toEqual([alias, 200])
    }
    const broken = await fetch(`${session.url}/models/%zz`, { headers: { authorization: `Bearer ${session.key}` } })
    expect(broken.status).toBe(404)
  })

  it('are unknown by a name that generation does not take', async () => {
    const session = await paddock.open()
    await expect(retrieve(session.client, 'gpt-4o')).rejects.toMatchObject({ status: 404, code: 'MODEL_UNKNOWN' })
    expect((await session.post({ ...hello, model: 'gpt-4o' })).status).toBe(404)
    for (const name of ['constructor', model.slice(1)]) {
      await expect(retrieve(session.client, name)).rejects.toMatchObject({ status: 404 })
    }
    expect(await retrieve(session.client, model)).toMatchObject({ id: model })
  })

  it('are listed and told as Gemini tells them', async () => {
    const session = await paddock.open({ policy: { model } })
    const baseUrl = session.url.replace(/\/v1$/, '')
    const gemini = new GoogleGenAI({ apiKey: session.key, httpOptions: { baseUrl } })
    const listed: unknown[] = []
    for await (const one of await gemini.models.list()) listed.push(one.name)
    expect(listed).toEqual([`models/${model}`])
    const one = await gemini.models.get({ model: 'gemini-2.5-pro' })
    expect(one).toMatchObject({ name: 'models/gemini-2.5-pro', inputTokenLimit: 131_072 })
    expect(one.supportedActions).toContain('generateContent')
    const older = await fetch(`${baseUrl}/v1beta/models`, { headers: { authorization: `Bearer ${session.key}` } })
    expect(await older.json()).toMatchObject({ models: [{ name: `models/${model}` }] })
    const unknown = await fetch(`${(await paddock.open()).url}beta/models/none`, { headers: { 'x-goog-api-key': 'x' } })
    expect([unknown.status, await unknown.json()]).toMatchObject([401, { error: { status: 'UNAUTHENTICATED' } }])
  })

  it('are listed and told as Anthropic tells them', async () => {
    const session = await paddock.open({ policy: { model } })
    const baseURL = session.url.replace(/\/v1$/, '')
    const anthropic = new Anthropic({ apiKey: session.key, baseURL, maxRetries: 0 })
    const listed: string[] = []
    for await (const one of anthropic.models.list()) listed.push(one.display_name)
    expect(listed).toEqual([model])
    expect(await anthropic.models.retrieve('claude-x')).toMatchObject({ type: 'model', id: 'claude-x' })
  })
})

it('input items of a stored response are listed in pages, and of no other', async () => {
  const session = await paddock.open()
  const { client } = session
  const first = await client.responses.create({ model, input: 'Say hello.' })
  const second = await client.responses.create({
    model,
    previous_response_id: first.id,
    input: [
      { role: 'user', content: 'One.' },
      { role: 'user', content: 'Two.' },
    ],
  })
  const texts = (items: readonly object[]) =>
    items.flatMap((item) => ('content' in item && Array.isArray(item.content) ? item.content : [])).map((p) => p.text)
  const alone = await client.responses.inputItems.list(first.id)
  expect(texts(alone.data)).toEqual(['Say hello.'])
  const all: object[] = []
  for await (const item of client.responses.inputItems.list(second.id, { limit: 3, order: 'asc' })) all.push(item)
  expect(texts(all)).toEqual(['Say hello.', 'Hello there.', 'One.', 'Two.'])
  const newest = await client.responses.inputItems.list(second.id, { limit: 1 })
  expect([texts(newest.data), newest.has_more]).toEqual([['Two.'], true])
  await expect(client.responses.inputItems.list(second.id, { after: 'nothing' })).rejects.toMatchObject({ status: 400 })
  await expect(client.responses.inputItems.list('resp_0')).rejects.toMatchObject({ status: 404 })
})

function raw(session: Awaited<ReturnType<TestProxy['open']>>, route: string, body: unknown, headers = {}) {
  const sent = typeof body === 'string' ? body : JSON.stringify(body)
  return rawPost(`${session.url}/${route}`, sent, {
    authorization: `Bearer ${session.key}`,
    'content-type': 'application/json',
    ...headers,
  })
}
