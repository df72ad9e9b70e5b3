/** Harnesses of few lines, one per wire API: they do what a script of {@link instruction} has them do. */
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import type OpenAI from 'openai'
import { script, shellTool, type TestSession } from './support.ts'

export const model = 'scripted-hermes'
export const instruction = 'Tidy up.'

/** Five turns, the first of them thinking. */
export const tidyScript = script(instruction, [
  { think: 'First I look.' },
  { shell: 'ls' },
  { shell: 'rm *.tmp' },
  { shell: 'ls' },
  { say: 'Tidy.' },
])

/** What a tool said at a turn; tools do the same in each process, unless a test says otherwise. */
export type Tools = (turn: number) => string
export const sameTools: Tools = (turn) => `done ${turn}`

/** Harnesses of few lines, one per wire API: ask, answer each tool call, until there is none. */
export type Harness = (
  session: TestSession,
  o: { readonly stream: boolean; readonly tools: Tools; readonly model?: string },
) => Promise<void>
const turns = 6

export const chat: Harness = async ({ client }, { stream, tools, model: asked = model }) => {
  const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [{ role: 'user', content: instruction }]
  for (let turn = 0; turn < turns; turn += 1) {
    const body = { model: asked, messages, tools: [shellTool] }
    const { choices } = stream
      ? await client.chat.completions.stream(body).finalChatCompletion()
      : await client.chat.completions.create(body)
    const message = choices[0]?.message
    if (message === undefined) throw new Error('no answer')
    messages.push(message)
    const calls = message.tool_calls ?? []
    if (calls.length === 0) return
    for (const { id } of calls) messages.push({ role: 'tool', tool_call_id: id, content: tools(turn) })
  }
}

const responsesTool = { ...shellTool.function, type: 'function' as const, strict: false }

/** `stored`: the server holds the conversation; else it travels, thinking in encrypted form. */
export const responses =
  (stored: boolean): Harness =>
  async ({ client }, { stream, tools }) => {
    // Some clients name their own items, anew in each process.
    const said = { type: 'message', role: 'user', id: `msg_${Math.random()}`, content: instruction }
    let input = [said] as OpenAI.Responses.ResponseInput
    let previous: string | null = null
    for (let turn = 0; turn < turns; turn += 1) {
      const body: OpenAI.Responses.ResponseCreateParamsNonStreaming = {
        model,
        input,
        tools: [responsesTool],
        store: stored,
        ...(stored ? { previous_response_id: previous } : { include: ['reasoning.encrypted_content'] }),
      }
      const response: OpenAI.Responses.Response = stream
        ? await client.responses.stream({ ...body, stream: true }).finalResponse()
        : await client.responses.create(body)
      previous = response.id
      const results = response.output.flatMap((item) =>
        item.type === 'function_call'
          ? [{ type: 'function_call_output' as const, call_id: item.call_id, output: tools(turn) }]
          : [],
      )
      if (results.length === 0) return
      const echoed = response.output.map((item) => (item.type === 'reasoning' ? { ...item, content: undefined } : item))
      input = stored ? results : [...input, ...(echoed as OpenAI.Responses.ResponseInput), ...results]
    }
  }

export const messages: Harness = async ({ url, key }, { stream, tools }) => {
  const client = new Anthropic({ apiKey: key, baseURL: url.replace(/\/v1$/, ''), maxRetries: 0 })
  const said: Anthropic.MessageParam[] = [{ role: 'user', content: instruction }]
  for (let turn = 0; turn < turns; turn += 1) {
    const body = {
      model,
      max_tokens: 2048,
      messages: said,
      thinking: { type: 'enabled' as const, budget_tokens: 1024 },
      tools: [{ name: 'shell', input_schema: shellTool.function.parameters as Anthropic.Tool.InputSchema }],
      metadata: { user_id: `process ${Math.random()}` },
    }
    const { content } = stream ? await client.messages.stream(body).finalMessage() : await client.messages.create(body)
    const results = content.flatMap((block) =>
      block.type === 'tool_use' ? [{ type: 'tool_result' as const, tool_use_id: block.id, content: tools(turn) }] : [],
    )
    if (results.length === 0) return
    said.push({ role: 'assistant', content }, { role: 'user', content: results })
  }
}

const gemini: Harness = async ({ url, key }, { stream, tools }) => {
  const client = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url.replace(/\/v1$/, '') } })
  const config = {
    tools: [{ functionDeclarations: [{ name: 'shell', parametersJsonSchema: shellTool.function.parameters }] }],
  }
  const talk = client.chats.create({ model, config })
  let message: Parameters<typeof talk.sendMessage>[0]['message'] = instruction
  for (let turn = 0; turn < turns; turn += 1) {
    let calls: { readonly id?: string; readonly name?: string }[] = []
    if (stream)
      for await (const chunk of await talk.sendMessageStream({ message })) calls.push(...(chunk.functionCalls ?? []))
    else calls = (await talk.sendMessage({ message })).functionCalls ?? []
    if (calls.length === 0) return
    message = calls.map(({ id, name }) => ({
      functionResponse: { ...(id === undefined ? {} : { id }), name: name ?? '', response: { output: tools(turn) } },
    }))
  }
}

export const harnesses: Readonly<Record<string, Harness>> = {
  chat,
  'responses, stored': responses(true),
  'responses, encrypted': responses(false),
  messages,
  gemini,
}
