import Anthropic from '@anthropic-ai/sdk'
import { FunctionCallingConfigMode, GoogleGenAI, type GenerateContentResponse } from '@google/genai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useEngine } from '../fixtures/use-engine.ts'
import { script, startProxy, type TestEngine, type TestProxy, type TestSession } from './support.ts'

/**
 * What all dialects can ask for, each through its official client, streamed and not, with both token strategies. The
 * answers must be the same, whatever the harness speaks.
 */
let engine: TestEngine
let paddock: TestProxy

beforeAll(async () => {
  engine = await useEngine()
  paddock = await startProxy(engine.url)
  await engine.control('/scripts', script('Count.', [{ say: 'one two three four five six seven' }]))
  await engine.control('/scripts', script('Look twice.', [{ parallel: [{ shell: 'ls /tmp' }, { shell: 'ls /etc' }] }]))
})
afterAll(async () => {
  await paddock[Symbol.asyncDispose]()
})

const model = 'scripted-hermes'
const parameters = { type: 'object' as const, properties: { command: { type: 'string' } }, required: ['command'] }
const schema = { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] }
const description = 'Run a command.'

interface Asked {
  readonly user: string
  /** The beginning of the answer, given by the client. */
  readonly prefill?: string
  readonly stop?: string
  readonly maxTokens?: number
  readonly json?: boolean
  readonly tool?: 'auto' | 'forced'
}

interface Answered {
  readonly text: string
  readonly calls: readonly (readonly [name: string, args: unknown])[]
  readonly end: string
}

interface Client {
  readonly name: string
  readonly prefills: boolean
  ask(session: TestSession, asked: Asked, stream: boolean): Promise<Answered>
}

const ends: Readonly<Record<string, string>> = {
  stop: 'stop',
  length: 'cut',
  tool_calls: 'call',
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'cut',
  tool_use: 'call',
  STOP: 'stop',
  MAX_TOKENS: 'cut',
  completed: 'stop',
  incomplete: 'cut',
}

const chat: Client = {
  name: 'chat',
  prefills: true,
  async ask({ client }, { user, prefill, stop, maxTokens = 300, json, tool }, stream) {
    const offered = [{ type: 'function' as const, function: { name: 'shell', description, parameters } }]
    const begun = [{ role: 'assistant' as const, content: prefill ?? '' }]
    const body = {
      model,
      max_tokens: maxTokens,
      messages: [{ role: 'user' as const, content: user }, ...(prefill === undefined ? [] : begun)],
      ...(prefill === undefined ? {} : { continue_final_message: true, add_generation_prompt: false }),
      ...(stop === undefined ? {} : { stop }),
      ...(json === true
        ? { response_format: { type: 'json_schema' as const, json_schema: { name: 'output', schema } } }
        : {}),
      ...(tool === undefined ? {} : { tools: offered }),
      ...(tool === 'forced' ? { tool_choice: { type: 'function' as const, function: { name: 'shell' } } } : {}),
    }
    const { completions } = client.chat
    const whole = stream
      ? await completions.stream(body).finalChatCompletion()
      : await completions.create({ ...body, stream: false })
    const [choice] = whole.choices
    const calls = (choice?.message.tool_calls ?? []).flatMap((call) =>
      call.type === 'function' ? [[call.function.name, JSON.parse(call.function.arguments)] as const] : [],
    )
    return { text: choice?.message.content ?? '', calls, end: choice?.finish_reason ?? '' }
  },
}

const responses: Client = {
  name: 'responses',
  prefills: false,
  async ask({ client }, { user, maxTokens = 300, json, tool }, stream) {
    const offered = [{ type: 'function' as const, name: 'shell', description, strict: false, parameters }]
    const body = {
      model,
      input: user,
      max_output_tokens: maxTokens,
      ...(json === true ? { text: { format: { type: 'json_schema' as const, name: 'output', schema } } } : {}),
      ...(tool === undefined ? {} : { tools: offered }),
      ...(tool === 'forced' ? { tool_choice: { type: 'function' as const, name: 'shell' } } : {}),
    }
    const whole = stream
      ? await client.responses.stream(body).finalResponse()
      : await client.responses.create({ ...body, stream: false })
    const calls = whole.output.flatMap((item) =>
      item.type === 'function_call' ? [[item.name, JSON.parse(item.arguments)] as const] : [],
    )
    return { text: whole.output_text, calls, end: calls.length > 0 ? 'tool_calls' : (whole.status ?? '') }
  },
}

const messages: Client = {
  name: 'messages',
  prefills: true,
  async ask({ key, url }, { user, prefill, stop, maxTokens = 300, json, tool }, stream) {
    const claude = new Anthropic({ apiKey: key, baseURL: url.replace(/\/v1$/, ''), maxRetries: 0 })
    const begun = [{ role: 'assistant' as const, content: prefill ?? '' }]
    const body = {
      model,
      max_tokens: maxTokens,
      messages: [{ role: 'user' as const, content: user }, ...(prefill === undefined ? [] : begun)],
      ...(stop === undefined ? {} : { stop_sequences: [stop] }),
      ...(json === true ? { output_config: { format: { type: 'json_schema' as const, schema } } } : {}),
      ...(tool === undefined ? {} : { tools: [{ name: 'shell', description, input_schema: parameters }] }),
      ...(tool === 'forced' ? { tool_choice: { type: 'tool' as const, name: 'shell' } } : {}),
    }
    const whole = stream ? await claude.messages.stream(body).finalMessage() : await claude.messages.create(body)
    return {
      text: whole.content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
      calls: whole.content.flatMap((block) => (block.type === 'tool_use' ? [[block.name, block.input] as const] : [])),
      end: whole.stop_reason ?? '',
    }
  },
}

const gemini: Client = {
  name: 'gemini',
  prefills: true,
  async ask({ key, url }, { user, prefill, stop, maxTokens = 300, json, tool }, stream) {
    const httpOptions = { baseUrl: url.replace(/\/v1$/, ''), retryOptions: { attempts: 1 } }
    const { models } = new GoogleGenAI({ apiKey: key, httpOptions })
    const functionCallingConfig = { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ['shell'] }
    const begun = [{ role: 'model', parts: [{ text: prefill ?? '' }] }]
    const body = {
      model,
      contents: [{ role: 'user', parts: [{ text: user }] }, ...(prefill === undefined ? [] : begun)],
      config: {
        maxOutputTokens: maxTokens,
        ...(stop === undefined ? {} : { stopSequences: [stop] }),
        ...(json === true ? { responseMimeType: 'application/json', responseJsonSchema: schema } : {}),
        ...(tool === undefined
          ? {}
          : { tools: [{ functionDeclarations: [{ name: 'shell', description, parametersJsonSchema: parameters }] }] }),
        ...(tool === 'forced' ? { toolConfig: { functionCallingConfig } } : {}),
      },
    }
    const all: GenerateContentResponse[] = []
    if (stream) for await (const response of await models.generateContentStream(body)) all.push(response)
    else all.push(await models.generateContent(body))
    const parts = all.flatMap((response) => response.candidates?.[0]?.content?.parts ?? [])
    const calls = parts.flatMap(({ functionCall }) =>
      functionCall === undefined ? [] : [[functionCall.name ?? '', functionCall.args] as const],
    )
    const finish = all.at(-1)?.candidates?.[0]?.finishReason ?? ''
    return { text: parts.map((part) => part.text ?? '').join(''), calls, end: calls.length > 0 ? 'tool_calls' : finish }
  },
}

const clients = [chat, responses, messages, gemini]
const ways = clients.flatMap((client) =>
  [false, true].flatMap((stream) =>
    (['record', 'splice'] as const).map((strategy) => ({ name: client.name, client, stream, strategy })),
  ),
)

describe.each(ways)('$name (stream $stream, $strategy)', ({ client, stream, strategy }) => {
  const ask = async (asked: Asked) => {
    const session = await paddock.open({ policy: { strategy } })
    const answer = await client.ask(session, asked, stream)
    return { ...answer, end: ends[answer.end] ?? answer.end }
  }

  it('gives an answer of a schema', async () => {
    const { text, end } = await ask({ user: 'Where?', json: true })
    expect(JSON.parse(text)).toEqual({ city: expect.any(String) })
    expect(end).toBe('stop')
  })

  it('says that an answer was cut', async () => {
    expect(await ask({ user: 'Count.', maxTokens: 3 })).toMatchObject({ text: 'one two th', end: 'cut' })
  })

  it('gives two calls of one answer, in order', async () => {
    const { calls, end } = await ask({ user: 'Look twice.', tool: 'auto' })
    expect(calls).toEqual([
      ['shell', { command: 'ls /tmp' }],
      ['shell', { command: 'ls /etc' }],
    ])
    expect(end).toBe('call')
  })

  it('makes the call that the client forces', async () => {
    const { calls } = await ask({ user: 'Hello.', tool: 'forced' })
    expect(calls).toEqual([['shell', { command: expect.any(String) }]])
  })

  // The Responses API knows neither stop sequences nor a begun answer.
  it.skipIf(!client.prefills)('stops where it is told', async () => {
    expect(await ask({ user: 'Count.', stop: ' five' })).toMatchObject({ text: 'one two three four', end: 'stop' })
  })

  it.skipIf(!client.prefills)('goes on with an answer that the client began', async () => {
    const { text } = await ask({ user: 'Count.', prefill: 'one two three' })
    expect(text).toBe(' four five six seven')
  })
})
