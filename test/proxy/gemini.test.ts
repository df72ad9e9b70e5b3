import {
  ApiError,
  type Content,
  type GenerateContentResponse,
  GoogleGenAI,
  type Part,
  type PartListUnion,
  ThinkingLevel,
  Type,
} from '@google/genai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chatRequestOf } from '../../src/proxy/index.ts'
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
  const steps = [{ think: 'I look.' }, { shell: 'ls -la' }, { say: 'Done.' }]
  await engine.control('/scripts', script('List the files.', steps))
  const both = { parallel: [{ shell: 'ls /tmp' }, { shell: 'ls /etc' }] }
  await engine.control('/scripts', script('Say.', [{ say: 'Plainly said.' }]))
  await engine.control('/scripts', script('Look twice.', [both, { say: 'Both seen.' }]))
  await engine.control(
    '/scripts',
    script('Count.', [{ think: 'I count.' }, { say: 'one two three four five six seven' }]),
  )
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
  await small[Symbol.asyncDispose]()
})

const model = 'scripted-hermes'
/** The dialect alone: what a token strategy makes of it has tests of its own. */
const record = { policy: { strategy: 'record' as const } }
const tools = [
  {
    functionDeclarations: [
      {
        name: 'shell',
        description: 'Run a command.',
        parameters: { type: Type.OBJECT, properties: { command: { type: Type.STRING } }, required: ['command'] },
      },
    ],
  },
]
const user = (text: string): Content => ({ role: 'user', parts: [{ text }] })

function gemini(session: TestSession): GoogleGenAI {
  return new GoogleGenAI({
    apiKey: session.key,
    httpOptions: { baseUrl: session.url.replace(/\/v1$/, ''), retryOptions: { attempts: 1 } },
  })
}

type Ask = Parameters<GoogleGenAI['models']['generateContent']>[0]

/** Asks in one of both ways and gives the parts that came, texts of one kind joined, with the last response. */
async function ask(session: TestSession, stream: boolean, body: Ask) {
  const { models } = gemini(session)
  const responses: GenerateContentResponse[] = []
  if (stream) for await (const response of await models.generateContentStream(body)) responses.push(response)
  else responses.push(await models.generateContent(body))
  const parts = responses.flatMap((response) => response.candidates?.[0]?.content?.parts ?? [])
  const last = responses.at(-1)
  return {
    parts,
    last,
    finish: last?.candidates?.[0]?.finishReason,
    text: parts.map((part) => (part.thought ? '' : (part.text ?? ''))).join(''),
  }
}

async function forks(session: TestSession) {
  return (await session.log()).calls.map((call) => call.commit?.forks.map((fork) => fork.cause))
}

describe.each([false, true])('the gemini dialect (stream %s)', (stream) => {
  it('extends with chats of the official client, which keep each piece of a stream as a content of its own', async () => {
    const session = await paddock.open({ policy: { strategy: 'splice', history: 'sampled' } })
    const thinkingConfig = { includeThoughts: true, thinkingLevel: ThinkingLevel.LOW }
    const chat = gemini(session).chats.create({ model, config: { tools, thinkingConfig } })
    const say = async (message: PartListUnion) => {
      const responses: GenerateContentResponse[] = []
      if (stream) for await (const response of await chat.sendMessageStream({ message })) responses.push(response)
      else responses.push(await chat.sendMessage({ message }))
      return responses.flatMap((response) => response.functionCalls ?? [])
    }
    // Text alone, with and without thinking; calls behind thinking; parallel calls.
    for (const instruction of ['Count.', 'List the files.', 'Look twice.', 'Say.', 'Count.']) {
      let calls = await say(instruction)
      while (calls.length > 0) {
        calls = await say(
          calls.map(({ id, name }) => ({
            functionResponse: { id: id ?? '', name: name ?? '', response: { output: 'x' } },
          })),
        )
      }
    }
    const log = await session.log()
    expect(log.calls).toHaveLength(7)
    expect(log.calls.map((call) => call.intent.strategy)).toEqual(log.calls.map(() => 'splice'))
    expect(log.calls.flatMap((call) => call.commit?.forks ?? [])).toEqual([])
    // Each prompt goes on from the answer before it.
    const segments = new Map(log.segments.map((segment) => [segment.id, segment]))
    const parents = log.calls.map((call) => segments.get(call.commit?.promptLeaf ?? '')?.parent?.segmentId)
    expect(parents.slice(1)).toEqual(log.calls.slice(0, -1).map((call) => call.commit?.choices[0]?.segmentId))
  })

  it('extends where a client puts the response of each parallel call right behind it, as ADK does with a stream', async () => {
    const session = await paddock.open({ policy: { strategy: 'splice', history: 'sampled' } })
    const { models } = gemini(session)
    const contents: Content[] = []
    for (const instruction of ['Look twice.', 'List the files.', 'Look twice.']) {
      contents.push({ role: 'user', parts: [{ text: instruction }] })
      for (;;) {
        const asked = { model, contents: [...contents], config: { tools } }
        const parts: Part[] = []
        if (stream) {
          for await (const one of await models.generateContentStream(asked)) {
            parts.push(...(one.candidates?.[0]?.content?.parts ?? []))
          }
        } else parts.push(...((await models.generateContent(asked)).candidates?.[0]?.content?.parts ?? []))
        for (const part of parts) {
          contents.push({ role: 'model', parts: [part] })
          const { id, name } = part.functionCall ?? {}
          if (id === undefined || name === undefined) continue
          contents.push({ role: 'user', parts: [{ functionResponse: { id, name, response: { output: id } } }] })
        }
        if (parts.every(({ functionCall }) => functionCall === undefined)) break
      }
    }
    const log = await session.log()
    expect(log.calls).toHaveLength(6)
    expect(log.calls.flatMap((call) => call.commit?.forks ?? [])).toEqual([])
    expect(log.segments.filter(({ parent }) => parent === null)).toHaveLength(1)
    const last = log.calls[5]
    if (last === undefined) throw new Error('no sixth call')
    const told = JSON.parse(Buffer.from(chatRequestOf(log, last) ?? []).toString())
    const roles = (told.messages as { role: string }[]).map(({ role }) => role)
    expect(roles.slice(0, 5)).toEqual(['user', 'assistant', 'tool', 'tool', 'assistant'])
  })

  it('shows the model the pictures that come with the response of a function', async () => {
    const session = await paddock.open(record)
    const data = Buffer.from('89504e470d0a1a0a0000000d494844520000003800000038', 'hex').toString('base64')
    const contents: Content[] = [
      user('Count.'),
      { role: 'model', parts: [{ functionCall: { id: 'c1', name: 'look', args: {} } }] },
      {
        role: 'user',
        parts: [
          {
            functionResponse: {
              id: 'c1',
              name: 'look',
              response: { output: 'seen' },
              parts: [{ inlineData: { mimeType: 'image/png', data } }],
            },
          },
        ],
      },
    ]
    await ask(session, stream, { model, contents })
    const log = await session.log()
    const [call] = log.calls
    if (call === undefined) throw new Error('no call')
    const told = Buffer.from(chatRequestOf(log, call) ?? []).toString()
    expect(told).toContain(`data:image/png;base64,${data}`)
    expect(told).toContain('seen')
  })

  it('gives text with true usage, and records the ids', async () => {
    const session = await paddock.open(record)
    const answer = await ask(session, stream, { model, contents: 'Count.' })
    expect(answer.text).toBe('one two three four five six seven')
    expect(answer.finish).toBe('STOP')
    const { calls, segments } = await session.log()
    expect(calls[0]?.intent).toMatchObject({ dialect: 'gemini', streamed: stream })
    const truth = await engine.generation(calls[0]?.intent.id)
    expect(segments.map((segment) => [...segment.tokens])).toEqual([truth.promptTokenIds, truth.choices[0]?.tokenIds])
    expect(answer.last?.usageMetadata).toMatchObject({
      promptTokenCount: truth.promptTokenIds.length,
      candidatesTokenCount: truth.choices[0]?.tokenIds.length,
    })
  })

  it('carries a call and signed thinking over two turns that extend, as Gemini CLI does it', async () => {
    const session = await paddock.open(record)
    const config = { tools, thinkingConfig: { includeThoughts: true, thinkingLevel: ThinkingLevel.LOW } }
    const first = await ask(session, stream, { model, contents: [user('List the files.')], config })
    expect(
      first.parts
        .filter((part) => part.thought)
        .map((part) => part.text)
        .join(''),
    ).toBe('I look.')
    const calls = first.parts.filter((part) => part.functionCall !== undefined)
    expect(calls).toMatchObject([
      { functionCall: { name: 'shell', args: { command: 'ls -la' } }, thoughtSignature: expect.any(String) },
    ])
    // Thoughts do not go back, signatures do.
    const contents = [
      user('List the files.'),
      { role: 'model', parts: calls },
      {
        role: 'user',
        parts: [
          { functionResponse: { id: calls[0]?.functionCall?.id ?? '', name: 'shell', response: { output: 'a.txt' } } },
        ],
      },
    ]
    const second = await ask(session, stream, { model, contents, config })
    expect(second.text).toBe('Done.')
    expect(await forks(session)).toEqual([[], []])
    expect((await session.log()).calls[0]?.delivery).toBe('echoed')
  })

  it('carries parallel calls, and matches responses without ids by name and order', async () => {
    const session = await paddock.open(record)
    const first = await ask(session, stream, { model, contents: [user('Look twice.')], config: { tools } })
    const calls = first.parts.flatMap((part) => part.functionCall ?? [])
    expect(calls.map((call) => call.args)).toEqual([{ command: 'ls /tmp' }, { command: 'ls /etc' }])
    const contents = [
      user('Look twice.'),
      {
        role: 'model',
        parts: calls.map(({ name, args }) => ({ functionCall: { name: name ?? '', args: args ?? {} } })),
      },
      {
        role: 'user',
        parts: [1, 2].map((n) => ({ functionResponse: { name: 'shell', response: { output: `${n}` } } })),
      },
    ]
    const second = await ask(session, stream, { model, contents, config: { tools } })
    expect(second.text).toBe('Both seen.')
    expect(await forks(session)).toEqual([[], []])
  })

  it('gives thinking before a text back by its signature', async () => {
    const session = await paddock.open(record)
    const first = await ask(session, stream, { model, contents: [user('Count.')] })
    expect(first.parts.some((part) => part.thought)).toBe(false)
    const contents = [user('Count.'), { role: 'model', parts: first.parts }, user('Count.')]
    await ask(session, stream, { model, contents })
    expect(await forks(session)).toEqual([[], []])
  })

  it('gives several candidates, each recorded', async () => {
    const session = await paddock.open(record)
    const answer = await ask(session, stream, {
      model,
      contents: 'Count.',
      config: { candidateCount: 2, maxOutputTokens: 4 },
    })
    expect(answer.finish).toBe('MAX_TOKENS')
    const sampled = (await session.log()).segments.filter((segment) => segment.origin === 'sampled')
    expect(sampled.map((segment) => segment.choice)).toEqual([0, 1])
  })
})

describe('errors and counts of the gemini dialect', () => {
  it('counts tokens and records nothing', async () => {
    const session = await paddock.open(record)
    const { totalTokens } = await gemini(session).models.countTokens({ model, contents: 'Count.' })
    expect((await session.log()).calls).toEqual([])
    const answer = await ask(session, false, { model, contents: 'Count.' })
    expect(totalTokens).toBe(answer.last?.usageMetadata?.promptTokenCount)
  })

  it('tells errors in its own shape, before and inside a stream', async () => {
    const session = await paddock.open(record)
    const stranger = new GoogleGenAI({
      apiKey: 'pdk_wrong',
      httpOptions: { baseUrl: session.url.replace(/\/v1$/, '') },
    })
    const refused = await stranger.models.generateContent({ model, contents: 'x' }).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(ApiError)
    expect(String(refused)).toContain('UNAUTHENTICATED')
    await engine.fault({ kind: 'die', at: 'mid_token', token: 4, match: { session: session.id } })
    await expect(ask(session, true, { model, contents: 'Count.' })).rejects.toThrow(/ENGINE_DIED/)
    expect(paddock.proxy.sessionStats(session.id).taints).toEqual(['ENGINE_DIED'])
  })

  it("says in Google's words that a prompt is too long", async () => {
    const session = await small.open(record)
    const ask = gemini(session).models.generateContent({
      model,
      contents: 'word '.repeat(200),
      config: { maxOutputTokens: 10 },
    })
    await expect(ask).rejects.toThrow(/input token count \(\d+\) exceeds the maximum number of tokens allowed \(64\)/)
  })

  it('keeps a silent stream open', async () => {
    await using paddock = await startProxy(engine.url, { limits: { keepAliveMs: 40 } })
    const session = await paddock.open(record)
    await engine.fault({ kind: 'stall', at: 'before_first_byte', seconds: 0.4, match: { session: session.id } })
    expect((await ask(session, true, { model, contents: 'Count.' })).finish).toBe('STOP')
  })

  it.each([
    ['cached contents', { contents: [user('x')], cachedContent: 'cachedContents/1' }, 'generateContent', 400],
    [
      'a part of server-side execution',
      { contents: [{ role: 'user', parts: [{ executableCode: {} }] }] },
      'generateContent',
      400,
    ],
    [
      'functions that only Gemini knows',
      { contents: [user('x')], tools: [{ computerUse: { environment: 'ENVIRONMENT_BROWSER' } }] },
      'generateContent',
      400,
    ],
    [
      'a file beside the response of a function that no engine reads',
      {
        contents: [
          user('x'),
          { role: 'model', parts: [{ functionCall: { name: 'f' } }] },
          {
            role: 'user',
            parts: [
              {
                functionResponse: { name: 'f', parts: [{ inlineData: { mimeType: 'application/pdf', data: 'eA==' } }] },
              },
            ],
          },
        ],
      },
      'generateContent',
      400,
    ],
    [
      'a choice among some of its functions',
      {
        contents: [user('x')],
        tools: [{ functionDeclarations: ['a', 'b', 'c'].map((name) => ({ name })) }],
        toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['a', 'b'] } },
      },
      'generateContent',
      400,
    ],
    ['a stream as a JSON array', { contents: [user('x')] }, 'streamGenerateContent', 404],
    ['embeddings', { content: user('x') }, 'embedContent', 404],
  ])('refuses %s', async (_what, body, method, status) => {
    const session = await paddock.open(record)
    const url = `${session.url}beta/models/${model}:${method}`
    const answer = await rawPost(url, JSON.stringify(body), { 'x-goog-api-key': session.key })
    expect(answer.status).toBe(status)
    expect(JSON.parse(await answer.text())).toMatchObject({ error: { code: status, status: expect.any(String) } })
  })
})
