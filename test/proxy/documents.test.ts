/** Documents and bounds on thinking in the three dialects that have them: what an engine is asked. */
import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { SessionPolicy } from '../../src/trajectory/index.ts'
import { type EngineAdapter, openaiEngine, sglangEngine } from '../../src/proxy/index.ts'
import { rawPost, startProxy, type TestProxy } from './support.ts'

/** Tells what it was asked, and answers like vLLM. */
let engine: Server
let paddock: TestProxy
let asked: Record<string, unknown>[] = []

beforeAll(async () => {
  engine = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (request.url === '/v1/chat/completions') asked.push(JSON.parse(Buffer.concat(chunks).toString()))
      const choice = {
        index: 0,
        message: { role: 'assistant', content: 'Read.' },
        finish_reason: 'stop',
        token_ids: [7],
      }
      const told = { id: 'x', object: 'chat.completion', model: 'm', choices: [choice], prompt_token_ids: [1, 2] }
      response.writeHead(request.method === 'POST' ? 200 : 404, { 'content-type': 'application/json' })
      response.end(JSON.stringify(told))
    })
  })
  engine.listen(0, '127.0.0.1')
  await once(engine, 'listening')
  paddock = await startProxy(engineUrl())
})
beforeEach(() => {
  asked = []
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
  engine.close()
})

const engineUrl = () => `http://127.0.0.1:${(engine.address() as AddressInfo).port}`

async function ask(path: string, body: object, policy: Partial<SessionPolicy> = {}, by = paddock) {
  const session = await by.open({ policy })
  const headers = { authorization: `Bearer ${session.key}`, 'content-type': 'application/json' }
  const answer = await rawPost(`${by.origin}/s/${session.id}${path}`, JSON.stringify(body), headers)
  const told = await answer.text()
  return { status: answer.status, told, session }
}

const gemini = '/v1beta/models/m:generateContent'
const base64 = Buffer.from('Grüße, 7 apples.').toString('base64')
const pdf = Buffer.from('%PDF-1.7').toString('base64')
const messages = (content: readonly object[]) => ({ model: 'm', max_tokens: 9, messages: [{ role: 'user', content }] })
const responses = (content: readonly object[]) => ({ model: 'm', input: [{ role: 'user', content }] })
const contents = (parts: readonly object[]) => ({ contents: [{ role: 'user', parts }] })
const document = (source: object, title?: string) => ({
  type: 'document',
  source,
  ...(title === undefined ? {} : { title }),
})

describe('documents', () => {
  it.each([
    [
      'messages, text',
      '/v1/messages',
      messages([document({ type: 'text', media_type: 'text/plain', data: 'Hi.' }, 'A')]),
      'A\n\nHi.',
    ],
    [
      'messages, content',
      '/v1/messages',
      messages([document({ type: 'content', content: [{ type: 'text', text: 'Hi.' }] })]),
      'Hi.',
    ],
    [
      'responses, a file',
      '/v1/responses',
      responses([{ type: 'input_file', filename: 'a.md', file_data: `data:text/markdown;base64,${base64}` }]),
      'a.md\n\nGrüße, 7 apples.',
    ],
    [
      'gemini, inline data',
      gemini,
      contents([{ inlineData: { mimeType: 'text/csv', data: base64 } }]),
      'Grüße, 7 apples.',
    ],
  ])('that are text stand in the prompt (%s)', async (_what, path, body, text) => {
    expect((await ask(path, body)).status).toBe(200)
    expect(asked[0]?.['messages']).toEqual([{ role: 'user', content: text }])
  })

  const wayOut = expect.stringMatching(/pdf.*is not served.*Extract its text/s)
  const openaiShape = { error: { message: wayOut, type: 'invalid_request_error', code: expect.any(String) } }
  it.each([
    [
      'messages',
      '/v1/messages',
      messages([document({ type: 'base64', media_type: 'application/pdf', data: pdf })]),
      { type: 'error', error: { type: 'invalid_request_error', message: wayOut } },
    ],
    [
      'messages, what a tool gave',
      '/v1/messages',
      messages([
        {
          type: 'tool_result',
          tool_use_id: 'a',
          content: [document({ type: 'base64', media_type: 'application/pdf', data: pdf })],
        },
      ]),
      { type: 'error', error: { type: 'invalid_request_error', message: wayOut } },
    ],
    [
      'responses',
      '/v1/responses',
      responses([{ type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` }]),
      openaiShape,
    ],
    [
      'gemini',
      gemini,
      contents([{ inlineData: { mimeType: 'application/pdf', data: pdf } }]),
      { error: { code: 400, status: 'INVALID_ARGUMENT', message: wayOut } },
    ],
  ])('that no engine reads are refused with the way out (%s)', async (_what, path, body, shape) => {
    const { status, told } = await ask(path, body)
    expect([status, asked]).toEqual([400, []])
    expect(JSON.parse(told)).toMatchObject(shape)
  })

  it.each([
    ['messages, an address', '/v1/messages', messages([document({ type: 'url', url: 'https://example.com/a.pdf' })])],
    ['messages, a stored file', '/v1/messages', messages([document({ type: 'file', file_id: 'file_1' })])],
    [
      'responses, an address',
      '/v1/responses',
      responses([{ type: 'input_file', file_url: 'https://a.example/a.pdf' }]),
    ],
    ['responses, a stored file', '/v1/responses', responses([{ type: 'input_file', file_id: 'file_1' }])],
    ['gemini, an address', gemini, contents([{ fileData: { mimeType: 'application/pdf', fileUri: 'gs://a/a.pdf' } }])],
  ])('that lie elsewhere are fetched by nobody and refused (%s)', async (_what, path, body) => {
    const { status, told } = await ask(path, body)
    expect([status, asked]).toEqual([400, []])
    expect(told).toMatch(/Fix: /)
  })

  it('are left to the engine where it is asked in its own API', async () => {
    const file = { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` } }
    const body = { model: 'm', messages: [{ role: 'user', content: [file] }] }
    expect((await ask('/v1/chat/completions', body)).status).toBe(200)
    expect(asked[0]?.['messages']).toEqual(body.messages)
  })
})

describe('a bound on thinking', () => {
  const thinking = { ...messages([{ type: 'text', text: 'x' }]), thinking: { type: 'enabled', budget_tokens: 1024 } }
  const config = { generationConfig: { thinkingConfig: { thinkingBudget: 1024 } } }
  const apis = [
    ['messages', '/v1/messages', thinking],
    ['gemini', gemini, { ...contents([{ text: 'x' }]), ...config }],
  ] as const

  it.each(apis)('is kept as asked and not told to the engine (%s)', async (_what, path, body) => {
    const { session } = await ask(path, body)
    expect(asked[0]).not.toHaveProperty('thinking_token_budget')
    const [call] = (await session.log()).calls
    expect([call?.intent.asked.other, call?.intent.used.other]).toEqual([['thinking_budget'], []])
  })

  it.each(apis)(
    'is told where the policy says so, and stands among what shaped sampling (%s)',
    async (_what, path, body) => {
      const { session } = await ask(path, body, { thinkingBudget: 'pass' })
      expect(asked[0]).toHaveProperty('thinking_token_budget', 1024)
      expect((await session.log()).calls[0]?.intent.used.other).toEqual(['thinking_budget'])
    },
  )

  it.each(apis)('is told SGLang in its own words (%s)', async (_what, path, body) => {
    const url = engineUrl()
    await using strict = await startProxy(url, { engine: sglangEngine({ url, strictThinking: true }) })
    const { status, session } = await ask(path, body, { thinkingBudget: 'pass' }, strict)
    expect(status).toBe(200)
    expect(asked[0]).toMatchObject({ custom_params: { thinking_budget: 1024 } })
    expect(asked[0]).not.toHaveProperty('thinking_token_budget')
    expect((await session.log()).calls[0]?.intent.used.other).toEqual(['thinking_budget'])
    // Unless the policy says so, nothing is told.
    await ask(path, body, {}, strict)
    expect(asked[1]).not.toHaveProperty('custom_params')
  })

  it.each<readonly [string, (url: string) => EngineAdapter]>([
    ['SGLang without strict thinking', (url) => sglangEngine({ url })],
    ['an engine of no known kind', (url) => openaiEngine({ url })],
  ])('cannot be promised with %s: no session is opened', async (_what, engineOf) => {
    const url = engineUrl()
    await using other = await startProxy(url, { engine: engineOf(url) })
    await expect(other.open({ policy: { thinkingBudget: 'pass' } })).rejects.toMatchObject({
      code: 'ENGINE_INCAPABLE',
      fix: expect.stringContaining('--enable-strict-thinking'),
    })
  })

  it('that a chat client writes in the words of SGLang is passed on and stands among what shaped sampling', async () => {
    const body = { model: 'm', messages: [{ role: 'user', content: 'x' }], custom_params: { thinking_budget: 7 } }
    const { session } = await ask('/v1/chat/completions', { ...body, custom_logit_processor: '{}' })
    expect(asked[0]).toMatchObject({ custom_params: { thinking_budget: 7 }, custom_logit_processor: '{}' })
    expect((await session.log()).calls[0]?.intent.used.other).toEqual(['logits_processors', 'thinking_budget'])
  })

  it("leaves what is the model's own choice to it", async () => {
    const body = { ...contents([{ text: 'x' }]), generationConfig: { thinkingConfig: { thinkingBudget: -1 } } }
    const { session } = await ask(gemini, body, { thinkingBudget: 'pass' })
    expect((await session.log()).calls[0]?.intent.asked.other).toEqual([])
  })
})
