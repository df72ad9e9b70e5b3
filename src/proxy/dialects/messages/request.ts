import { type LosslessJson, stringifyLossless } from '../../../core/index.ts'
import type { ContinuedAnswer } from '../../session/conversation.ts'
import type { DialectMemory } from '../contract.ts'
import {
  type CanonicalMessage,
  type CanonicalPart,
  type CanonicalRequest,
  plainRequest,
} from '../translate/canonical.ts'
import { readEffort } from '../translate/effort.ts'
import {
  flagAt,
  type JsonObject,
  listAt,
  member,
  numberAt,
  refused,
  shape,
  textAt,
  textOf,
  textsOf,
} from '../translate/read.ts'
import { type MessagesBlock, readAssistant, readContent, readToolResult } from './blocks.ts'
import { readThread, type ThreadTurn, threadUntil } from './threads.ts'
import { readMessagesTool } from './tools.ts'

/** A Messages request, read. */
export interface MessagesRequest {
  readonly canonical: CanonicalRequest
  readonly handles: ReadonlyMap<number, ContinuedAnswer>
  /** What it adds to a message thread; null: it is in none. */
  readonly thread: Omit<ThreadTurn, 'answer' | 'handle'> | null
  /** What becomes of thinking: shown, sent as a signature alone, or kept back from clients that did not ask for it. */
  readonly thinking: 'shown' | 'signature' | 'hidden'
}

/** What Anthropic's servers would do in place of an answer or beside it. */
const serverFields = { mcp_servers: 'Run the tool', container: 'Run the tool', compaction: 'Compact' } as const

/**
 * Reads a request of Anthropic's Messages API (API reference "Create a Message", version 2023-06-01, and the beta fields
 * that Claude Code 2.1 sends). `cache_control`, `metadata`, `service_tier`, `context_management` and betas say nothing to
 * an engine and are left out. Throws `BODY_INVALID_SHAPE`; tools and blocks that Anthropic's servers would run are refused.
 */
export function readMessagesRequest(body: JsonObject, memory: DialectMemory, counting: boolean): MessagesRequest {
  for (const [field, fix] of Object.entries(serverFields)) {
    const found = member(body, field)
    if (found === undefined || found.kind === 'null' || (found.kind === 'array' && found.items.length === 0)) continue
    throw refused(field, 'server-side execution is not served', `${fix} in the harness.`)
  }
  const maxTokens = numberAt(body, 'max_tokens')
  if (maxTokens === null && !counting) throw shape('max_tokens', 'a number')
  const thread = readThread(body)
  const before = thread?.previous == null ? null : threadBefore(body, threadUntil(thread.previous, memory.threads))
  const messages: CanonicalMessage[] = []
  const handles = new Map<number, ContinuedAnswer>()
  const system = systemParts(member(body, 'system'))
  if (system.length > 0) messages.push({ role: 'system', content: system })
  const turns = listAt(body, 'messages')
  if (turns.length === 0) throw shape('messages', 'a list with at least one message')
  for (const [index, turn] of turns.entries()) {
    const field = `messages.${index}`
    const role = textAt(turn, 'role')
    const blocks = readContent(member(turn, 'content'), `${field}.content`)
    if (role === 'assistant') addAssistant(messages, handles, blocks, field, memory)
    else if (role === 'system') messages.push({ role, content: blocks.map((block) => textPart(block, field)) })
    else if (role === 'user') addUser(messages, blocks, field)
    else throw shape(`${field}.role`, 'user, assistant or system')
  }
  const thinking = member(body, 'thinking')
  const tools = before?.tools ?? listAt(body, 'tools').map(readMessagesTool)
  const from = before?.messages.length ?? 0
  return {
    handles: new Map([...(before?.handles ?? []), ...[...handles].map(([at, answer]) => [from + at, answer] as const)]),
    thread: thread === null ? null : { previous: thread.previous, messages, handles, tools },
    thinking: thinkingOf(thinking),
    canonical: {
      ...plainRequest,
      model: textAt(body, 'model') ?? null,
      messages: before === null ? messages : [...before.messages, ...messages],
      tools,
      ...toolChoice(member(body, 'tool_choice')),
      temperature: numberAt(body, 'temperature'),
      topP: numberAt(body, 'top_p'),
      topK: numberAt(body, 'top_k'),
      maxTokens,
      stop: textsOf(listAt(body, 'stop_sequences')),
      reasoningEffort: readEffort(textAt(member(body, 'output_config'), 'effort')),
      thinkingTokens: textAt(thinking, 'type') === 'enabled' ? numberAt(thinking, 'budget_tokens') : null,
      responseFormatText: responseFormat(body),
      continueFinal: messages.at(-1)?.role === 'assistant',
      streamed: flagAt(body, 'stream') ?? false,
    },
  }
}

/** What stands before a request that continues a thread, which keeps its system prompt and tools. */
function threadBefore(body: JsonObject, turns: readonly ThreadTurn[]) {
  for (const field of ['system', 'tools'] as const) {
    if (member(body, field) === undefined) continue
    throw refused(field, 'a thread keeps what it was created with', 'Leave it out, or create a thread anew.')
  }
  const messages: CanonicalMessage[] = []
  const handles = new Map<number, ContinuedAnswer>()
  for (const turn of turns) {
    for (const [at, answer] of turn.handles) handles.set(messages.length + at, answer)
    messages.push(...turn.messages, turn.answer)
    handles.set(messages.length - 1, turn.handle)
  }
  return { messages, handles, tools: turns[0]?.tools ?? [] }
}

/** Claude Code's first system block changes with every request (`x-anthropic-billing-header: …`): it is no instruction. */
const billingLine = /^x-anthropic-billing-header:[^\n]*\n?/

function systemParts(system: LosslessJson | undefined): CanonicalPart[] {
  if (system === undefined) return []
  const texts = readContent(system, 'system').map((block) => textPart(block, 'system').text.replace(billingLine, ''))
  const text = texts.filter((one) => one !== '').join('\n\n')
  return text === '' ? [] : [{ type: 'text', text }]
}

function textPart(block: MessagesBlock, field: string): { readonly type: 'text'; readonly text: string } {
  const text = textAt(block.value, 'text')
  if (block.type !== 'text' || text === undefined) throw shape(field, 'text')
  return { type: 'text', text }
}

/** Blocks of one answer that a harness keeps in several messages are one turn again, as the API has it. */
function addAssistant(
  messages: CanonicalMessage[],
  handles: Map<number, ContinuedAnswer>,
  blocks: readonly MessagesBlock[],
  field: string,
  memory: DialectMemory,
): void {
  const { message, handle } = readAssistant(blocks, field, memory.handles)
  const before = messages.at(-1)
  if (before?.role === 'assistant') {
    messages[messages.length - 1] = {
      role: 'assistant',
      text: joined(before.text, message.text),
      reasoning: joined(before.reasoning, message.reasoning),
      toolCalls: [...before.toolCalls, ...message.toolCalls],
    }
  } else messages.push(message)
  if (handle !== null) handles.set(messages.length - 1, handle)
}

function joined(a: string | null, b: string | null): string | null {
  return a === null ? b : b === null ? a : a + b
}

/** Tool results become messages of their own; images in them, which templates do not take there, follow as the user's. */
function addUser(messages: CanonicalMessage[], blocks: readonly MessagesBlock[], field: string): void {
  const parts: CanonicalPart[] = []
  const images: CanonicalPart[] = []
  const flush = () => {
    if (parts.length > 0) messages.push({ role: 'user', content: parts.splice(0) })
  }
  for (const block of blocks) {
    if (block.type === 'tool_result') {
      flush()
      const result = readToolResult(block, field)
      messages.push({ role: 'tool', callId: result.callId, content: result.content })
      images.push(...result.images)
    } else parts.push(...block.parts(field))
  }
  parts.unshift(...images)
  if (blocks.length === 0) messages.push({ role: 'user', content: [] })
  flush()
}

function toolChoice(choice: LosslessJson | undefined): Pick<CanonicalRequest, 'toolChoice' | 'parallelToolCalls'> {
  const parallelToolCalls = flagAt(choice, 'disable_parallel_tool_use') === true ? false : null
  const type = textAt(choice, 'type')
  if (choice === undefined) return { toolChoice: null, parallelToolCalls }
  if (type === 'auto' || type === 'none') return { toolChoice: type, parallelToolCalls }
  if (type === 'any') return { toolChoice: 'required', parallelToolCalls }
  const name = textAt(choice, 'name')
  if (type === 'tool' && name !== undefined) return { toolChoice: { name }, parallelToolCalls }
  throw shape('tool_choice', 'auto, any, none, or tool with a name')
}

/** `output_config.format`, or the beta `output_format`: a JSON schema. */
function responseFormat(body: JsonObject): string | null {
  const format = member(member(body, 'output_config'), 'format') ?? member(body, 'output_format')
  const schema = member(format, 'schema')
  if (schema === undefined) return null
  return `{"type":"json_schema","json_schema":{"name":"output","schema":${stringifyLossless(schema)},"strict":true}}`
}

function thinkingOf(thinking: LosslessJson | undefined): MessagesRequest['thinking'] {
  const type = textAt(thinking, 'type')
  if (type !== 'enabled' && type !== 'adaptive') return 'hidden'
  return textOf(member(thinking, 'display')) === 'omitted' ? 'signature' : 'shown'
}
