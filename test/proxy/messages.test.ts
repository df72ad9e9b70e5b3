import Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useEngine } from '../fixtures/use-engine.ts'
import { script, rawPost, startProxy, type TestEngine, type TestProxy, type TestSession } from './support.ts'

let engine: TestEngine
let paddock: TestProxy
let smallEngine: TestEngine
let small: TestProxy

beforeAll(async () => {
  engine = await useEngine()
  paddock = await startProxy(engine.url)
  smallEngine = await useEngine('--max-model-len', '64')
  small = await startProxy(smallEngine.url)
  await engine.control(
    '/scripts',
    script('List the files.', [{ think: 'I look.' }, { shell: 'ls -la' }, { say: 'Done.' }]),
  )
  await engine.control(
    '/scripts',
    script('Look twice.', [{ parallel: [{ shell: 'ls /tmp' }, { shell: 'ls /etc' }] }, { say: 'Both seen.' }]),
  )
  await engine.control('/scripts', script('Count.', [{ say: 'one two three four five six seven eight nine ten' }]))
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
  await small[Symbol.asyncDispose]()
})

const model = 'scripted-hermes'
/** The dialect alone: what a token strategy makes of it has tests of its own. */
const record = { policy: { strategy: 'record' as const } }
const adaptive = { thinking: { type: 'adaptive' as const } }
const tools = [
  {
    name: 'shell',
    description: 'Run a command.',
    input_schema: { type: 'object' as const, properties: { command: { type: 'string' } }, required: ['command'] },
  },
]
const user = (content: string) => ({ role: 'user' as const, content })
const count = { model, max_tokens: 100, messages: [user('Count.')] }

function claude(session: TestSession): Anthropic {
  return new Anthropic({ apiKey: session.key, baseURL: session.url.replace(/\/v1$/, ''), maxRetries: 0 })
}

function post(session: TestSession, body: unknown, path = '/messages') {
  const headers = { 'x-api-key': session.key, 'content-type': 'application/json' }
  return rawPost(`${session.url}${path}`, JSON.stringify(body), headers)
}

const events = (text: string) =>
  text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => /^event: (\w+)\ndata: /.exec(event)?.[1])

describe('the messages dialect', () => {
  it.each([false, true])('gives text with true usage, and records the ids (stream %s)', async (stream) => {
    const session = await paddock.open(record)
    const { messages } = claude(session)
    const answer = stream ? await messages.stream(count).finalMessage() : await messages.create(count)
    expect(answer).toMatchObject({
      type: 'message',
      role: 'assistant',
      model,
      content: [{ type: 'text', text: 'one two three four five six seven eight nine ten' }],
      stop_reason: 'end_turn',
    })
    const { calls, segments } = await session.log()
    expect(calls[0]?.intent).toMatchObject({ dialect: 'messages', path: '/v1/messages', streamed: stream })
    expect(calls[0]?.commit).toMatchObject({ outcome: { kind: 'complete' }, findings: [] })
    const truth = await engine.generation(calls[0]?.intent.id)
    expect(segments.map((segment) => [...segment.tokens])).toEqual([truth.promptTokenIds, truth.choices[0]?.tokenIds])
    expect(answer.usage).toMatchObject({
      input_tokens: truth.promptTokenIds.length,
      output_tokens: truth.choices[0]?.tokenIds.length,
    })
  })

  it('tells the size of the prompt with the first event', async () => {
    const session = await paddock.open(record)
    const text = await (await post(session, { ...count, stream: true })).text()
    const first = JSON.parse(text.split('\n')[1]?.slice(6) ?? '')
    const { calls } = await session.log()
    const truth = await engine.generation(calls[0]?.intent.id)
    expect(first.message.usage.input_tokens).toBe(truth.promptTokenIds.length)
    expect(Buffer.from(calls[0]?.commit?.reply ?? []).toString()).toBe(text)
    expect(new Set(events(text))).toEqual(
      new Set([
        'message_start',
        'content_block_start',
        'content_block_delta',
        'content_block_stop',
        'message_delta',
        'message_stop',
      ]),
    )
  })

  it.each([false, true])('carries thinking and a tool over two turns that extend (stream %s)', async (stream) => {
    const session = await paddock.open(record)
    const { messages } = claude(session)
    const ask = (history: Anthropic.MessageParam[]) => {
      const body = { model, max_tokens: 500, tools, ...adaptive, messages: history }
      return stream ? messages.stream(body).finalMessage() : messages.create(body)
    }
    const first = await ask([user('List the files.')])
    expect(first.stop_reason).toBe('tool_use')
    expect(first.content).toMatchObject([
      { type: 'thinking', thinking: 'I look.', signature: expect.stringMatching(/./) },
      { type: 'tool_use', name: 'shell', input: { command: 'ls -la' } },
    ])
    const [tool] = first.content.filter((block) => block.type === 'tool_use')
    const second = await ask([
      user('List the files.'),
      { role: 'assistant', content: first.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: tool?.id ?? '', content: 'a.txt' }] },
    ])
    expect(second.content).toMatchObject([{ type: 'text', text: 'Done.' }])
    const { calls, segments } = await session.log()
    expect(calls.flatMap((call) => call.commit?.forks ?? [])).toEqual([])
    expect(calls[0]?.delivery).toBe('echoed')
    const sampled = segments.filter((segment) => segment.origin === 'sampled')
    const prompt = segments.find((segment) => segment.callId === calls[1]?.intent.id && segment.origin === 'prompt')
    expect(prompt?.parent?.segmentId).toBe(sampled[0]?.id)
  })

  it.each([false, true])('carries parallel calls, each a block of its own (stream %s)', async (stream) => {
    const session = await paddock.open(record)
    const { messages } = claude(session)
    const body = { model, max_tokens: 500, tools, messages: [user('Look twice.')] }
    const answer = stream ? await messages.stream(body).finalMessage() : await messages.create(body)
    expect(answer.content.map((block) => block.type === 'tool_use' && block.input)).toEqual([
      { command: 'ls /tmp' },
      { command: 'ls /etc' },
    ])
    const [a, b] = answer.content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []))
    expect(a).not.toBe(b)
    const stored = JSON.parse((await session.log()).calls[0]?.commit?.choices[0]?.message ?? '{}')
    expect(stored.tool_calls.map((call: { id: string }) => call.id)).toEqual([a, b])
  })

  it('keeps thinking back from clients that did not ask for it', async () => {
    const { messages } = claude(await paddock.open(record))
    const answer = await messages.create({ model, max_tokens: 500, tools, messages: [user('List the files.')] })
    expect(answer.content.map((block) => block.type)).toEqual(['tool_use'])
  })

  it('brings thinking back that travelled as a signature alone, and ignores a foreign one', async () => {
    const session = await paddock.open(record)
    const { messages } = claude(session)
    const body = { model, max_tokens: 500, tools, thinking: { type: 'adaptive' as const, display: 'omitted' as const } }
    const first = await messages.create({ ...body, messages: [user('List the files.')] })
    expect(first.content[0]).toMatchObject({ type: 'thinking', thinking: '' })
    const tool = first.content.find((block) => block.type === 'tool_use')
    const history = (content: Anthropic.ContentBlockParam[]): Anthropic.MessageParam[] => [
      user('List the files.'),
      { role: 'assistant', content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: tool?.id ?? '', content: 'a.txt' }] },
    ]
    await messages.create({ ...body, messages: history(first.content) })
    const { calls } = await session.log()
    expect(calls.at(-1)?.commit?.forks).toEqual([])

    const other = claude(await paddock.open(record))
    const answer = await other.messages.create({ ...body, messages: history(first.content) })
    expect(answer.content).toMatchObject([{ type: 'text', text: 'Done.' }])
  })

  it('leaves out what changes with every request and says nothing to the engine', async () => {
    const session = await paddock.open(record)
    const bodies = ['a1', 'b2'].map((cch) => ({
      ...count,
      system: [
        { type: 'text', text: `x-anthropic-billing-header: cc_version=2.1.329; cch=${cch};` },
        { type: 'text', text: 'You are Claude Code.', cache_control: { type: 'ephemeral' } },
      ],
      metadata: { user_id: cch },
      context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    }))
    const prompts: unknown[] = []
    for (const body of bodies) {
      const answer = JSON.parse(await (await post(session, body, '/messages?beta=true')).text())
      expect(answer).not.toHaveProperty('context_management')
      const call = (await session.log()).calls.at(-1)
      expect(Buffer.from(call?.intent.body ?? []).toString()).toBe(JSON.stringify(body))
      prompts.push((await engine.generation(call?.intent.id)).promptTokenIds)
    }
    expect(prompts[0]).toEqual(prompts[1])
    const { calls } = await session.log()
    expect(calls[0]?.intent.requestDigest).toBe(calls[1]?.intent.requestDigest)
  })

  it('counts tokens as the engine would render them, and records nothing', async () => {
    const session = await paddock.open(record)
    const body = { model, tools, system: 'Be brief.', messages: [user('List the files.')] }
    const { input_tokens: counted } = await claude(session).messages.countTokens(body)
    expect((await session.log()).calls).toEqual([])
    const answer = await claude(session).messages.create({ ...body, max_tokens: 50 })
    expect(counted).toBe(answer.usage.input_tokens)
  })

  it('continues an answer that the client began, and stops where it is told', async () => {
    const session = await paddock.open(record)
    const prefilled = await claude(session).messages.create({
      ...count,
      messages: [...count.messages, { role: 'assistant', content: 'one two three' }],
    })
    expect(prefilled.content).toMatchObject([{ type: 'text', text: expect.stringMatching(/^ four five/) }])
    const stopped = await claude(session).messages.create({ ...count, stop_sequences: [' five'] })
    expect(stopped).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: ' five' })
    const cut = await claude(session).messages.create({ ...count, max_tokens: 3 })
    expect(cut.stop_reason).toBe('max_tokens')
  })

  it('obeys the tool choice', async () => {
    const session = await paddock.open(record)
    const body = { model, max_tokens: 500, tools, messages: [user('List the files.')] }
    const forced = await claude(session).messages.create({ ...body, tool_choice: { type: 'tool', name: 'shell' } })
    expect(forced).toMatchObject({ stop_reason: 'tool_use', content: [{ type: 'tool_use', name: 'shell' }] })
    const { calls } = await session.log()
    expect(calls[0]?.intent.used.other).toContain('tool_choice')
  })
})

describe('errors of the messages dialect', () => {
  it.each([
    ['a body that is no JSON', '{', 400, 'invalid_request_error'],
    ['no max_tokens', { model, messages: [user('x')] }, 400, 'invalid_request_error'],
    [
      "a tool of Anthropic's servers",
      { ...count, tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
      400,
      'invalid_request_error',
    ],
    [
      'remote MCP',
      { ...count, mcp_servers: [{ type: 'url', url: 'https://example.com', name: 'x' }] },
      400,
      'invalid_request_error',
    ],
    ['compaction by the server', { ...count, compaction: { type: 'summarize' } }, 400, 'invalid_request_error'],
    [
      'an unknown block',
      { ...count, messages: [{ role: 'user', content: [{ type: 'container_upload' }] }] },
      400,
      'invalid_request_error',
    ],
  ])('%s', async (_what, body, status, type) => {
    const session = await paddock.open(record)
    const headers = { 'x-api-key': session.key }
    const answer = await rawPost(
      `${session.url}/messages`,
      typeof body === 'string' ? body : JSON.stringify(body),
      headers,
    )
    expect(answer.status).toBe(status)
    expect(JSON.parse(await answer.text())).toMatchObject({
      type: 'error',
      error: { type, message: expect.any(String) },
    })
    expect((await session.log()).calls).toEqual([])
  })

  it('tells an unknown key and a route that is not served in its own shape', async () => {
    const session = await paddock.open(record)
    const stranger = new Anthropic({ apiKey: 'pdk_wrong', baseURL: session.url.replace(/\/v1$/, ''), maxRetries: 0 })
    await expect(stranger.messages.create(count)).rejects.toThrow(Anthropic.AuthenticationError)
    const denied = await post(session, {}, '/messages/batches')
    expect(JSON.parse(await denied.text())).toMatchObject({ type: 'error', error: { type: 'not_found_error' } })
  })

  it('says that a prompt is too long in the words that Claude Code acts on', async () => {
    const { messages } = claude(await small.open(record))
    const long = { ...count, max_tokens: 10, messages: [user('word '.repeat(200))] }
    await expect(messages.create(long)).rejects.toThrow(/prompt is too long: \d+ tokens > 64 maximum/)
    await expect(messages.create({ ...count, max_tokens: 65 })).rejects.toThrow(/max_tokens: 65 > 64/)
  })

  it('gives the client an error of its own kind when the engine is overloaded or dies', async () => {
    const session = await paddock.open(record)
    const { messages } = claude(session)
    await engine.fault({ kind: 'http_error', status: 503 })
    await expect(messages.create(count)).rejects.toMatchObject({
      status: 529,
      error: { error: { type: 'overloaded_error' } },
    })
    await engine.fault({ kind: 'die', at: 'mid_token', token: 4 })
    await expect(messages.stream(count).finalMessage()).rejects.toThrow(/ENGINE_DIED/)
    expect(paddock.proxy.sessionStats(session.id).taints).toEqual(['ENGINE_ERROR', 'ENGINE_DIED'])
  })

  it('keeps a silent stream open with pings that the client does not see', async () => {
    await using paddock = await startProxy(engine.url, { limits: { keepAliveMs: 40 } })
    const session = await paddock.open(record)
    await engine.fault({ kind: 'stall', at: 'mid_stream', token: 2, seconds: 0.4, match: { session: session.id } })
    const raw = await post(session, { ...count, stream: true })
    expect(events(await raw.text())).toContain('ping')
    await engine.fault({ kind: 'stall', at: 'before_first_byte', seconds: 0.4, match: { session: session.id } })
    const answer = await claude(session).messages.stream(count).finalMessage()
    expect(answer.stop_reason).toBe('end_turn')
  })
})
