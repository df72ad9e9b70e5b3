import type { Handles } from '../../session/echo-handles.ts'
import type { LooseObject } from '../../session/sampling.ts'
import { type Answer, tokenCount } from '../chat/answer.ts'
import { answerMessage } from '../translate/answer-message.ts'
import type { ResponsesRequest } from './request.ts'
import type { ResponseCache } from './response-cache.ts'
import { type ClientTool, clientTool } from './client-tools.ts'
import { freeformInput } from './tools.ts'

/** What the answer of one call is written from. */
export interface ResponsesCall {
  readonly callId: string
  /** Seconds, for `created_at`. */
  readonly createdAt: number
  readonly model: string | null
  readonly request: ResponsesRequest
  readonly handles: Handles
  readonly cache: Pick<ResponseCache, 'put'>
}

export function responseId({ callId }: Pick<ResponsesCall, 'callId'>): string {
  return `resp_${callId.replaceAll('-', '')}`
}

/** The id of an output item; `index` is its place in the output. */
export function itemId(
  call: ResponsesCall,
  kind: 'rs' | 'msg' | 'fc' | 'ctc' | ClientTool['prefix'],
  index: number,
): string {
  return `${kind}_${call.callId.replaceAll('-', '')}${index}`
}

export function reasoningItem(call: ResponsesCall, index: number, text: string, status: string): LooseObject {
  const handle = { callId: call.callId, choice: 0 }
  return {
    id: itemId(call, 'rs', index),
    type: 'reasoning',
    summary: [],
    content: text === '' ? [] : [{ type: 'reasoning_text', text }],
    ...(call.request.encrypted && text !== '' ? { encrypted_content: call.handles.mint(handle, text) } : {}),
    status,
  }
}

export function messageItem(call: ResponsesCall, index: number, text: string | null, status: string): LooseObject {
  return {
    id: itemId(call, 'msg', index),
    type: 'message',
    role: 'assistant',
    status,
    content: text === null ? [] : [textPart(text)],
  }
}

export function textPart(text: string): LooseObject {
  return { type: 'output_text', text, annotations: [], logprobs: [] }
}

/** A tool call under the name and in the form in which the client offered the tool. */
export function callItem(
  call: ResponsesCall,
  index: number,
  tool: { readonly id: string; readonly name: string; readonly argumentsText: string },
  status: string,
): LooseObject {
  const offered = call.request.offered.get(tool.name) ?? { kind: 'function', name: tool.name, namespace: null }
  const own = offered.kind === 'client' ? clientTool(offered.name) : null
  if (own !== null) {
    const id = itemId(call, own.prefix, index)
    return { id, type: own.callType, status, call_id: tool.id, ...own.did(tool.argumentsText) }
  }
  const head = { status, call_id: tool.id, name: offered.name }
  if (offered.kind === 'custom') {
    const input = freeformInput(tool.argumentsText)
    return { id: itemId(call, 'ctc', index), type: 'custom_tool_call', ...head, input }
  }
  return {
    id: itemId(call, 'fc', index),
    type: 'function_call',
    ...head,
    arguments: tool.argumentsText,
    ...(offered.namespace === null ? {} : { namespace: offered.namespace }),
  }
}

/** The output of a finished answer. */
export function outputOf(call: ResponsesCall, answer: Answer): LooseObject[] {
  const choice = answer.choices[0]
  if (choice === undefined) return []
  const output: LooseObject[] = []
  const { status } = endOf(answer)
  const reasoning = choice.reasoning ?? ''
  if (reasoning !== '') output.push(reasoningItem(call, output.length, reasoning, 'completed'))
  const text = `${choice.content ?? ''}${choice.refusal ?? ''}`
  if (text !== '') output.push(messageItem(call, output.length, text, status))
  for (const tool of choice.toolCalls) {
    const told = { id: tool.id ?? '', name: tool.name, argumentsText: tool.arguments }
    output.push(callItem(call, output.length, told, status))
  }
  return output
}

/** How an answer ended: an answer that was cut is `incomplete`, with the reason. */
export function endOf(answer: Answer): { readonly status: 'completed' | 'incomplete'; readonly reason: string | null } {
  const finish = answer.choices[0]?.finishReason
  if (finish === 'length') return { status: 'incomplete', reason: 'max_output_tokens' }
  if (finish === 'content_filter') return { status: 'incomplete', reason: 'content_filter' }
  return { status: 'completed', reason: null }
}

/** A response object. Instructions and tools, which the client knows, are not repeated. */
export function responseObject(
  call: ResponsesCall,
  answer: Answer,
  state: {
    readonly status: string
    readonly reason?: string | null
    readonly error?: object
    readonly output: LooseObject[]
  },
): LooseObject {
  const { request } = call
  const ended = state.status !== 'in_progress'
  return {
    id: responseId(call),
    object: 'response',
    created_at: call.createdAt,
    status: state.status,
    background: false,
    error: state.error ?? null,
    incomplete_details: state.reason === undefined || state.reason === null ? null : { reason: state.reason },
    instructions: null,
    metadata: {},
    model: call.model ?? answer.model ?? '',
    output: state.output,
    parallel_tool_calls: request.canonical.parallelToolCalls ?? true,
    previous_response_id: request.previous,
    store: request.store,
    temperature: numberOf(request.canonical.temperature),
    top_p: numberOf(request.canonical.topP),
    max_output_tokens: numberOf(request.canonical.maxTokens),
    tool_choice: 'auto',
    tools: [],
    truncation: 'disabled',
    usage: ended && state.error === undefined ? usageOf(answer) : null,
  }
}

function numberOf(text: string | null): number | null {
  return text === null ? null : Number(text)
}

function usageOf(answer: Answer): LooseObject {
  const input = answer.promptIds?.length ?? answer.claimed('prompt_tokens') ?? 0
  const output = answer.claimed('completion_tokens') ?? tokenCount(answer.choices[0])
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
  }
}

/** Keeps what a later request may continue, unless the client asked not to. */
export function shelve(call: ResponsesCall, answer: Answer, response: LooseObject): void {
  const choice = answer.choices[0]
  if (!call.request.store || choice === undefined) return
  call.cache.put(responseId(call), {
    previous: call.request.previous,
    input: call.request.input,
    inputText: call.request.inputText,
    answer: answerMessage(choice),
    handle: { callId: call.callId, choice: 0 },
    response,
  })
}
