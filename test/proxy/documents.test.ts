/** Documents and bounds on thinking in the three dialects that have them: what an engine is asked. */
import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { SessionPolicy } from '../../src/trajectory/index.ts'
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
  paddock = await startProxy(`http://127.0.0.1:${(engine.address() as AddressInfo).port}`)
})
beforeEach(() => {
  asked = []
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
  engine.close()
})

async function ask(path: string, body: object, policy: Partial<SessionPolicy> = {}) {
  const session = await paddock.open({ policy })
  const headers = { authorization: `Bearer ${session.key}`, 'content-type': 'application/json' }
  const answer = await rawPost(`${paddock.origin}/s/${session.id}${path}`, JSON.stringify(body), headers)
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

  it.each([
    ['messages', '/v1/messages', messages([document({ type: 'base64', media_type: 'application/pdf', data: pdf })])],
    [
      'responses',
      '/v1/responses',
      responses([{ type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` }]),
    ],
    ['gemini', gemini, contents([{ inlineData: { mimeType: 'application/pdf', data: pdf } }])],
  ])('that no engine reads are refused with the way out (%s)', async (_what, path, body) => {
    const { status, told } = await ask(path, body)
    expect([status, asked]).toEqual([400, []])
    expect(told).toMatch(/pdf.*is not served.*Extract its text/s)
  })
})

describe('a bound on thinking', () => {
  const thinking = { ...messages([{ type: 'text', text: 'x' }]), thinking: { type: 'enabled', budget_tokens: 1024 } }
  const config = { generationConfig: { thinkingConfig: { thinkingBudget: 1024 } } }
  const wires = [
    ['messages', '/v1/messages', thinking],
    ['gemini', gemini, { ...contents([{ text: 'x' }]), ...config }],
  ] as const

  it.each(wires)('is kept as asked and not told to the engine (%s)', async (_what, path, body) => {
    const { session } = await ask(path, body)
    expect(asked[0]).not.toHaveProperty('thinking_token_budget')
    const [call] = (await session.log()).calls
    expect([call?.intent.asked.other, call?.intent.used.other]).toEqual([['thinking_budget'], []])
  })

  it.each(wires)(
    'is told where the policy says so, and stands among what shaped sampling (%s)',
    async (_what, path, body) => {
      const { session } = await ask(path, body, { thinkingBudget: 'pass' })
      expect(asked[0]).toHaveProperty('thinking_token_budget', 1024)
      expect((await session.log()).calls[0]?.intent.used.other).toEqual(['thinking_budget'])
    },
  )

  it("leaves what is the model's own choice to it", async () => {
    const body = { ...contents([{ text: 'x' }]), generationConfig: { thinkingConfig: { thinkingBudget: -1 } } }
    const { session } = await ask(gemini, body, { thinkingBudget: 'pass' })
    expect((await session.log()).calls[0]?.intent.asked.other).toEqual([])
  })
})
