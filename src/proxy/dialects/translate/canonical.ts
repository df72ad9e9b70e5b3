import type { ReasoningEffort } from './effort.ts'

/** A part of a message's content. */
export type CanonicalPart =
  | { readonly type: 'text'; readonly text: string }
  /** A data URL or an address. */
  | { readonly type: 'image'; readonly url: string }

export interface CanonicalToolCall {
  readonly id: string
  readonly name: string
  /** JSON text as the client wrote it. */
  readonly argumentsText: string
}

export type CanonicalMessage =
  | { readonly role: 'system' | 'developer' | 'user'; readonly content: readonly CanonicalPart[] }
  | { readonly role: 'tool'; readonly callId: string; readonly content: readonly CanonicalPart[] }
  | {
      readonly role: 'assistant'
      readonly text: string | null
      readonly reasoning: string | null
      readonly toolCalls: readonly CanonicalToolCall[]
    }

export interface CanonicalTool {
  readonly name: string
  readonly description: string | null
  /** JSON Schema of the arguments as the client wrote it. */
  readonly parametersText: string | null
}

/** What all dialects can say. Numbers are JSON texts, as the client wrote them; null: not said. */
export interface CanonicalRequest {
  readonly model: string | null
  readonly messages: readonly CanonicalMessage[]
  readonly tools: readonly CanonicalTool[]
  readonly toolChoice: 'auto' | 'none' | 'required' | { readonly name: string } | null
  readonly parallelToolCalls: boolean | null
  readonly temperature: string | null
  readonly topP: string | null
  readonly topK: string | null
  readonly presencePenalty: string | null
  readonly frequencyPenalty: string | null
  readonly seed: string | null
  readonly maxTokens: string | null
  readonly stop: readonly string[]
  readonly n: string | null
  readonly reasoningEffort: ReasoningEffort | null
  /** Tokens that the model may think at most. */
  readonly thinkingTokens: string | null
  /** A `response_format`, JSON text. */
  readonly responseFormatText: string | null
  /** The last message is the beginning of the answer. */
  readonly continueFinal: boolean
  readonly streamed: boolean
}

/** A request that says nothing but its messages. */
export const plainRequest: Omit<CanonicalRequest, 'messages'> = {
  model: null,
  tools: [],
  toolChoice: null,
  parallelToolCalls: null,
  temperature: null,
  topP: null,
  topK: null,
  presencePenalty: null,
  frequencyPenalty: null,
  seed: null,
  maxTokens: null,
  stop: [],
  n: null,
  reasoningEffort: null,
  thinkingTokens: null,
  responseFormatText: null,
  continueFinal: false,
  streamed: false,
}

/**
 * The chat completion body that every dialect's request becomes: one order of members, so that the same exchange gives
 * the same bytes whatever the harness speaks (invariant I10).
 */
export function canonicalBody(
  request: CanonicalRequest,
  reasoningName: 'reasoning' | 'reasoning_content' = 'reasoning',
): Buffer {
  const { tools, toolChoice, stop } = request
  const choice =
    toolChoice === null || typeof toolChoice === 'string'
      ? toolChoice
      : { type: 'function', function: { name: toolChoice.name } }
  const withTools = tools.length > 0
  return Buffer.from(
    object({
      model: quoted(request.model),
      messages: list(request.messages.map((message) => messageText(message, reasoningName))),
      tools: withTools ? list(tools.map(toolText)) : null,
      tool_choice: choice === null || !withTools ? null : JSON.stringify(choice),
      parallel_tool_calls: request.parallelToolCalls === null || !withTools ? null : String(request.parallelToolCalls),
      temperature: request.temperature,
      top_p: request.topP,
      top_k: request.topK,
      presence_penalty: request.presencePenalty,
      frequency_penalty: request.frequencyPenalty,
      seed: request.seed,
      max_tokens: request.maxTokens,
      stop: stop.length === 0 ? null : JSON.stringify(stop),
      n: request.n,
      reasoning_effort: quoted(request.reasoningEffort),
      thinking_token_budget: request.thinkingTokens,
      response_format: request.responseFormatText,
      continue_final_message: request.continueFinal ? 'true' : null,
      add_generation_prompt: request.continueFinal ? 'false' : null,
      stream: request.streamed ? 'true' : null,
    }),
  )
}

function messageText(message: CanonicalMessage, reasoningName: string): string {
  if (message.role !== 'assistant') {
    const content = contentText(message.content)
    if (message.role !== 'tool') return object({ role: quoted(message.role), content })
    return object({ role: '"tool"', tool_call_id: quoted(message.callId), content })
  }
  return object({
    role: '"assistant"',
    content: JSON.stringify(message.text),
    [reasoningName]: quoted(message.reasoning),
    tool_calls: message.toolCalls.length === 0 ? null : list(message.toolCalls.map(callText)),
  })
}

/** One text is a string: several harnesses write now this, now a list of one part. */
function contentText(parts: readonly CanonicalPart[]): string {
  const [only, second] = parts
  if (only === undefined) return '""'
  if (second === undefined && only.type === 'text') return JSON.stringify(only.text)
  return list(
    parts.map((part) =>
      part.type === 'text'
        ? object({ type: '"text"', text: quoted(part.text) })
        : object({ type: '"image_url"', image_url: object({ url: quoted(part.url) }) }),
    ),
  )
}

function callText(call: CanonicalToolCall): string {
  const fn = object({ name: quoted(call.name), arguments: quoted(call.argumentsText) })
  return object({ id: quoted(call.id), type: '"function"', function: fn })
}

function toolText(tool: CanonicalTool): string {
  const fn = object({
    name: quoted(tool.name),
    description: quoted(tool.description),
    parameters: tool.parametersText,
  })
  return object({ type: '"function"', function: fn })
}

/** An object of JSON texts; null members are left out. */
function object(members: Readonly<Record<string, string | null>>): string {
  const parts = Object.entries(members).flatMap(([key, value]) => (value === null ? [] : [`"${key}":${value}`]))
  return `{${parts.join(',')}}`
}

function list(items: readonly string[]): string {
  return `[${items.join(',')}]`
}

function quoted(text: string | null): string | null {
  return text === null ? null : JSON.stringify(text)
}
