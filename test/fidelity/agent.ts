/**
 * A multi-turn tool-calling agent in the manner of the scripts that people write: it knows a base URL and a key,
 * keeps a list of messages and sends it again with each call.
 */
import { once } from 'node:events'
import { request } from 'node:http'

/** Where the agent sends its calls. */
export interface Endpoint {
  readonly baseUrl: string
  readonly key: string
}

/** How this agent behaves. */
export interface Habits {
  readonly model: string
  /** Sends the thinking of earlier answers back. */
  readonly echoesThinking: boolean
  readonly streams: boolean
  /** Asks for this many answers in its second call and goes on with the last. */
  readonly siblings: number
  /** Hangs up in the middle of its third call and asks again, as the OpenAI SDK does. */
  readonly hangsUp: boolean
}

interface ToolCall {
  readonly id: string
  readonly type: 'function'
  readonly function: { name: string; arguments: string }
}

interface Answer {
  content: string | null
  reasoning: string
  readonly toolCalls: ToolCall[]
}

const shellTool = {
  type: 'function',
  function: {
    name: 'shell',
    description: 'Run a command.',
    parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
  },
}

/** Works through the questions one after another and returns the conversation as it stands at the end. */
export async function runAgent(
  endpoint: Endpoint,
  habits: Habits,
  questions: readonly string[],
): Promise<readonly object[]> {
  const messages: object[] = [{ role: 'system', content: 'You are careful.  Use tools.' }]
  let calls = 0
  for (const question of questions) {
    messages.push({ role: 'user', content: question })
    for (;;) {
      calls += 1
      const n = calls === 2 ? habits.siblings : 1
      const body = { model: habits.model, messages, tools: [shellTool], n, stream: habits.streams, max_tokens: 500 }
      const mustHangUp = habits.hangsUp && calls === 3
      if (mustHangUp) await hangUp(endpoint, { ...body, stream: true })
      const answers = await ask(endpoint, body, mustHangUp ? { 'x-stainless-retry-count': '1' } : {})
      const answer = answers.at(-1)
      if (answer === undefined) throw new Error('no answer')
      messages.push(asMessage(answer, habits))
      if (answer.toolCalls.length === 0) break
      for (const call of answer.toolCalls) {
        messages.push({
          role: 'tool',
          tool_call_id: call.id,
          content: `ran ${call.function.arguments}\nexit 0 – ünïcode`,
        })
      }
    }
  }
  return messages
}

/** A call without tools beside the conversation, as CLIs make them to name a session. */
export async function askForTitle(endpoint: Endpoint, model: string): Promise<void> {
  const messages = [
    { role: 'system', content: 'Write a title of three words.' },
    { role: 'user', content: 'name this' },
  ]
  await ask(endpoint, { model, messages, n: 1, stream: false, max_tokens: 20 }, {})
}

function asMessage(answer: Answer, habits: Habits): object {
  return {
    role: 'assistant',
    content: answer.content,
    ...(habits.echoesThinking && answer.reasoning !== '' ? { reasoning: answer.reasoning } : {}),
    ...(answer.toolCalls.length > 0 ? { tool_calls: answer.toolCalls } : {}),
  }
}

async function ask(
  endpoint: Endpoint,
  body: Readonly<Record<string, unknown>> & { readonly n: number; readonly stream: boolean },
  headers: Readonly<Record<string, string>>,
): Promise<readonly Answer[]> {
  const response = await fetch(`${endpoint.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${endpoint.key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${response.status} ${text}`)
  return body.stream ? fromStream(text, body.n) : fromWhole(text)
}

interface WireMessage {
  readonly content?: string | null
  readonly reasoning?: string | null
  readonly reasoning_content?: string | null
  readonly tool_calls?: readonly (ToolCall & { readonly index: number })[]
}

function fromWhole(text: string): readonly Answer[] {
  const { choices } = JSON.parse(text) as { choices: readonly { message: WireMessage }[] }
  return choices.map(({ message }) => ({
    content: message.content ?? null,
    reasoning: message.reasoning ?? message.reasoning_content ?? '',
    toolCalls: (message.tool_calls ?? []).map(({ id, type, function: called }) => ({ id, type, function: called })),
  }))
}

function fromStream(text: string, n: number): readonly Answer[] {
  const answers = Array.from({ length: n }, (): Answer => ({ content: null, reasoning: '', toolCalls: [] }))
  for (const event of text.split('\n\n')) {
    if (!event.startsWith('data: {')) continue
    const { choices } = JSON.parse(event.slice(6)) as { choices: readonly { index: number; delta: WireMessage }[] }
    for (const { index, delta } of choices) {
      const answer = answers[index]
      if (answer === undefined) continue
      if (typeof delta.content === 'string') answer.content = (answer.content ?? '') + delta.content
      answer.reasoning += delta.reasoning ?? delta.reasoning_content ?? ''
      for (const part of delta.tool_calls ?? []) {
        const known = answer.toolCalls[part.index]
        if (known === undefined) {
          answer.toolCalls[part.index] = {
            id: part.id,
            type: 'function',
            function: { name: part.function.name, arguments: part.function.arguments ?? '' },
          }
        } else known.function.arguments += part.function.arguments ?? ''
      }
    }
  }
  return answers
}

/** Sends a request, reads the first bytes of the answer and drops the connection. */
async function hangUp(endpoint: Endpoint, body: object): Promise<void> {
  const out = request(`${endpoint.baseUrl}/chat/completions`, {
    method: 'POST',
    agent: false,
    headers: { authorization: `Bearer ${endpoint.key}`, 'content-type': 'application/json' },
  })
  out.on('error', () => undefined)
  out.end(JSON.stringify(body))
  const [response] = (await once(out, 'response')) as [NodeJS.ReadableStream]
  await once(response, 'data')
  out.destroy()
  await once(out, 'close')
}
