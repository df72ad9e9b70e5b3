import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Dialect, DialectMemory } from '../../src/proxy/dialects/contract.ts'
import { dialectNamed } from '../../src/proxy/dialects/registry.ts'
import { requestMessages } from '../../src/proxy/index.ts'
import { MessageThreads } from '../../src/proxy/dialects/messages/threads.ts'
import { ResponseCache } from '../../src/proxy/dialects/responses/response-cache.ts'
import { EchoHandles } from '../../src/proxy/session/echo-handles.ts'

/** An exchange that all four dialects can express. */
interface Exchange {
  readonly system: string | null
  readonly turns: readonly Turn[]
  readonly tools: readonly { readonly name: string; readonly description: string; readonly schema: object }[]
  readonly choice: 'auto' | 'none' | 'required' | null
  readonly temperature: number | null
  readonly topP: number | null
  readonly maxTokens: number
  readonly effort: 'low' | 'medium' | 'high' | null
  readonly stream: boolean
}
type Turn =
  | { readonly kind: 'user'; readonly text: string }
  | { readonly kind: 'image'; readonly text: string; readonly data: string }
  | { readonly kind: 'assistant'; readonly text: string }
  | { readonly kind: 'calls'; readonly text: string | null; readonly calls: readonly Call[] }
interface Call {
  readonly id: string
  readonly name: string
  readonly args: object
  readonly output: string
}

const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).map((value) => `x${value}`)
const name = fc.constantFrom('shell', 'read_file', 'write-file')
const call = fc.record({
  id: fc.uuid(),
  name,
  args: fc.dictionary(fc.constantFrom('command', 'path', 'n'), fc.oneof(text, fc.integer(), fc.boolean()), {
    maxKeys: 3,
  }),
  output: text,
})
const turn: fc.Arbitrary<readonly Turn[]> = fc.oneof(
  fc.tuple(fc.record({ kind: fc.constant('user'), text }), fc.record({ kind: fc.constant('assistant'), text })),
  fc.tuple(
    fc.record({ kind: fc.constant('user'), text }),
    fc.record({
      kind: fc.constant('calls'),
      text: fc.option(text),
      calls: fc.uniqueArray(call, { minLength: 1, maxLength: 3, selector: ({ id }) => id }),
    }),
  ),
)
const last: fc.Arbitrary<Turn> = fc.oneof(
  fc.record({ kind: fc.constant('user'), text }),
  fc.record({ kind: fc.constant('image'), text, data: fc.base64String({ minLength: 4 }) }),
)
const exchange: fc.Arbitrary<Exchange> = fc.record({
  system: fc.option(text),
  turns: fc.tuple(fc.array(turn, { maxLength: 3 }), last).map(([turns, end]) => [...turns.flat(), end]),
  tools: fc.uniqueArray(
    fc.record({
      name,
      description: text,
      schema: fc.constant({ type: 'object', properties: { n: { type: 'number' } } }),
    }),
    { maxLength: 3, selector: (tool) => tool.name },
  ),
  choice: fc.constantFrom(null, 'auto', 'none', 'required'),
  temperature: fc.option(fc.constantFrom(0, 0.5, 1.25)),
  topP: fc.option(fc.constantFrom(0.5, 1)),
  maxTokens: fc.integer({ min: 1, max: 9999 }),
  effort: fc.constantFrom(null, 'low', 'medium', 'high'),
  stream: fc.boolean(),
})

const given = <T>(key: string, value: T | null) => (value === null ? {} : { [key]: value })
const dataUrl = (data: string) => `data:image/png;base64,${data}`

function asChat(e: Exchange): object {
  return {
    model: 'm',
    messages: [
      ...(e.system === null ? [] : [{ role: 'system', content: e.system }]),
      ...e.turns.flatMap((one): object[] => {
        switch (one.kind) {
          case 'user':
            return [{ role: 'user', content: one.text }]
          case 'image':
            return [
              {
                role: 'user',
                content: [
                  { type: 'text', text: one.text },
                  { type: 'image_url', image_url: { url: dataUrl(one.data) } },
                ],
              },
            ]
          case 'assistant':
            return [{ role: 'assistant', content: one.text }]
          case 'calls':
            return [
              {
                role: 'assistant',
                content: one.text,
                tool_calls: one.calls.map(({ id, name, args }) => ({
                  id,
                  type: 'function',
                  function: { name, arguments: JSON.stringify(args) },
                })),
              },
              ...one.calls.map(({ id, output }) => ({ role: 'tool', tool_call_id: id, content: output })),
            ]
        }
      }),
    ],
    ...(e.tools.length === 0
      ? {}
      : {
          tools: e.tools.map(({ name, description, schema }) => ({
            type: 'function',
            function: { name, description, parameters: schema },
          })),
          ...given('tool_choice', e.choice),
        }),
    ...given('temperature', e.temperature),
    ...given('top_p', e.topP),
    max_tokens: e.maxTokens,
    ...given('reasoning_effort', e.effort),
    ...(e.stream ? { stream: true } : {}),
  }
}

function asMessages(e: Exchange): object {
  const choices = { auto: 'auto', none: 'none', required: 'any' }
  return {
    model: 'm',
    stream: e.stream,
    max_tokens: e.maxTokens,
    ...given('output_config', e.effort === null ? null : { effort: e.effort }),
    ...given(
      'system',
      e.system === null ? null : [{ type: 'text', text: e.system, cache_control: { type: 'ephemeral' } }],
    ),
    ...given('temperature', e.temperature),
    ...given('top_p', e.topP),
    tools: e.tools.map(({ name, description, schema }) => ({ name, description, input_schema: schema })),
    ...given('tool_choice', e.choice === null ? null : { type: choices[e.choice] }),
    messages: e.turns.flatMap((one): object[] => {
      switch (one.kind) {
        case 'user':
          return [{ role: 'user', content: [{ type: 'text', text: one.text }] }]
        case 'image': {
          const source = { type: 'base64', media_type: 'image/png', data: one.data }
          return [
            {
              role: 'user',
              content: [
                { type: 'text', text: one.text },
                { type: 'image', source },
              ],
            },
          ]
        }
        case 'assistant':
          return [{ role: 'assistant', content: one.text }]
        case 'calls':
          return [
            {
              role: 'assistant',
              content: [
                ...(one.text === null ? [] : [{ type: 'text', text: one.text }]),
                ...one.calls.map(({ id, name, args }) => ({ type: 'tool_use', id, name, input: args })),
              ],
            },
            {
              role: 'user',
              content: one.calls.map(({ id, output }) => ({ type: 'tool_result', tool_use_id: id, content: output })),
            },
          ]
      }
    }),
  }
}

function asResponses(e: Exchange): object {
  return {
    model: 'm',
    stream: e.stream,
    store: false,
    ...given('instructions', e.system),
    max_output_tokens: e.maxTokens,
    ...given('reasoning', e.effort === null ? null : { effort: e.effort }),
    ...given('temperature', e.temperature),
    ...given('top_p', e.topP),
    tools: e.tools.map(({ name, description, schema }) => ({
      type: 'function',
      name,
      description,
      parameters: schema,
    })),
    ...given('tool_choice', e.choice),
    input: e.turns.flatMap((one): object[] => {
      switch (one.kind) {
        case 'user':
          return [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: one.text }] }]
        case 'image': {
          const image = { type: 'input_image', image_url: dataUrl(one.data) }
          return [{ role: 'user', content: [{ type: 'input_text', text: one.text }, image] }]
        }
        case 'assistant':
          return [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: one.text }] }]
        case 'calls':
          return [
            ...(one.text === null ? [] : [{ type: 'message', role: 'assistant', content: one.text }]),
            ...one.calls.map(({ id, name, args }) => ({
              type: 'function_call',
              call_id: id,
              name,
              arguments: JSON.stringify(args),
            })),
            ...one.calls.map(({ id, output }) => ({ type: 'function_call_output', call_id: id, output })),
          ]
      }
    }),
  }
}

function asGemini(e: Exchange): object {
  const modes = { auto: 'AUTO', none: 'NONE', required: 'ANY' }
  return {
    ...given('systemInstruction', e.system === null ? null : { parts: [{ text: e.system }] }),
    generationConfig: {
      maxOutputTokens: e.maxTokens,
      ...given('temperature', e.temperature),
      ...given('topP', e.topP),
      ...given('thinkingConfig', e.effort === null ? null : { thinkingLevel: e.effort.toUpperCase() }),
    },
    tools: [
      {
        functionDeclarations: e.tools.map(({ name, description, schema }) => ({
          name,
          description,
          parametersJsonSchema: schema,
        })),
      },
    ],
    ...given('toolConfig', e.choice === null ? null : { functionCallingConfig: { mode: modes[e.choice] } }),
    contents: e.turns.flatMap((one): object[] => {
      switch (one.kind) {
        case 'user':
          return [{ role: 'user', parts: [{ text: one.text }] }]
        case 'image': {
          const inlineData = { mimeType: 'image/png', data: one.data }
          return [{ role: 'user', parts: [{ text: one.text }, { inlineData }] }]
        }
        case 'assistant':
          return [{ role: 'model', parts: [{ text: one.text }] }]
        case 'calls':
          return [
            {
              role: 'model',
              parts: [
                ...(one.text === null ? [] : [{ text: one.text }]),
                ...one.calls.map(({ id, name, args }) => ({ functionCall: { id, name, args } })),
              ],
            },
            {
              role: 'user',
              parts: one.calls.map(({ id, name, output }) => ({
                functionResponse: { id, name, response: { output } },
              })),
            },
          ]
      }
    }),
  }
}

function engineRequest(dialect: Dialect['name'], body: object, path: string) {
  const memory: DialectMemory = {
    handles: new EchoHandles(Buffer.alloc(32)),
    responses: new ResponseCache(),
    threads: new MessageThreads(),
    answerOfToolCall: () => null,
    reasoningName: 'reasoning',
  }
  const bytes = Buffer.from(JSON.stringify(body))
  const { chat } = dialectNamed(dialect).read({ bytes, headers: {}, path, now: 0, memory })
  return {
    text: chat.bytes.toString(),
    turns: chat.turns,
    system: chat.lineage.systemDigest,
    tools: chat.lineage.toolsDigest,
  }
}

describe('one meaning', () => {
  it('gives the engine the same bytes, whatever dialect the harness speaks', () => {
    fc.assert(
      fc.property(exchange, (e) => {
        const chat = engineRequest('chat', asChat(e), '/v1/chat/completions')
        const method = e.stream ? 'streamGenerateContent' : 'generateContent'
        expect(engineRequest('messages', asMessages(e), '/v1/messages')).toEqual(chat)
        expect(engineRequest('responses', asResponses(e), '/v1/responses')).toEqual(chat)
        expect(engineRequest('gemini', asGemini(e), `/v1beta/models/m:${method}`)).toEqual(chat)
        const read = (dialect: Dialect['name'], body: object, path: string) =>
          requestMessages({ dialect, path, body: Buffer.from(JSON.stringify(body)), startedAt: 0 })
        const { messages } = JSON.parse(chat.text)
        expect(read('chat', asChat(e), '/v1/chat/completions')).toEqual(messages)
        expect(read('messages', asMessages(e), '/v1/messages')).toEqual(messages)
        expect(read('responses', asResponses(e), '/v1/responses')).toEqual(messages)
      }),
      { numRuns: 300 },
    )
  })

  it('keeps numbers, key order and schemas as they were written', () => {
    const input = '{"z":1.0,"a":12345678901234567890,"1":-0}'
    const schema = '{"type":"object","properties":{"b":{"maximum":1.0},"a":{}}}'
    const messages = `{"model":"m","max_tokens":1,"temperature":1.0,"tools":[{"name":"f","input_schema":${schema}}],
      "messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"i","name":"f","input":${input}}]}]}`
    const memory = {
      handles: new EchoHandles(Buffer.alloc(32)),
      responses: new ResponseCache(),
      threads: new MessageThreads(),
      answerOfToolCall: () => null,
      reasoningName: 'reasoning' as const,
    }
    const { chat } = dialectNamed('messages').read({
      bytes: Buffer.from(messages),
      headers: {},
      path: '/v1/messages',
      now: 0,
      memory,
    })
    const text = chat.bytes.toString()
    expect(text).toContain(JSON.stringify(input))
    expect(text).toContain(schema)
    expect(text).toContain('"temperature":1.0')
  })
})
