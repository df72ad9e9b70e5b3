import { type LosslessJson, PaddockError, stringifyLossless } from '../../../core/index.ts'
import type { DialectMemory } from '../contract.ts'
import { type CanonicalMessage, type CanonicalRequest, plainRequest } from '../translate/canonical.ts'
import { readEffort } from '../translate/effort.ts'
import { flagAt, type JsonObject, listAt, member, numberAt, refused, shape, textAt, textOf } from '../translate/read.ts'
import { ItemReader } from './items.ts'
import { type OfferedTools, readToolChoice, readTools } from './tools.ts'

/** A Responses request, read. */
export interface ResponsesRequest {
  readonly canonical: CanonicalRequest
  readonly handles: ItemReader['handles']
  readonly offered: OfferedTools['offered']
  /** What this request adds to the conversation: kept where it is to be stored. */
  readonly input: readonly CanonicalMessage[]
  /** The same as the client wrote it, JSON text. */
  readonly inputText: string
  readonly previous: string | null
  readonly store: boolean
  /** Reasoning travels in `encrypted_content`. */
  readonly encrypted: boolean
}

const unserved = ['background', 'prompt', 'conversation'] as const

/**
 * Reads a request of OpenAI's Responses API (API reference "Create a model response", and the shapes of Codex CLI 0.169).
 * Throws `BODY_INVALID_SHAPE`; what OpenAI's servers would keep or run is refused or left out (see `readTools`).
 */
export function readResponsesRequest(body: JsonObject, memory: DialectMemory): ResponsesRequest {
  for (const field of unserved) {
    const found = member(body, field)
    if (found === undefined || (found.kind === 'boolean' && !found.value)) continue
    throw refused(field, 'this is not served here', 'Send the whole conversation as input, or previous_response_id.')
  }
  const reader = new ItemReader(memory)
  const instructions = textAt(body, 'instructions')
  if (instructions !== undefined && instructions !== '') {
    reader.add([{ role: 'system', content: [{ type: 'text', text: instructions }] }], null)
  }
  const previous = textAt(body, 'previous_response_id') ?? null
  for (const turn of earlier(previous, memory)) {
    reader.add(turn.input, null)
    reader.add([turn.answer], turn.handle)
  }
  const from = reader.messages.length
  const given = member(body, 'input')
  readInput(given, reader)
  if (reader.messages.length === 0) throw shape('input', 'a string or a list of items')
  const { tools, offered } = readTools(body)
  return {
    handles: reader.handles,
    offered,
    input: reader.messages.slice(from),
    inputText: given === undefined ? '[]' : stringifyLossless(given),
    previous,
    store: flagAt(body, 'store') ?? true,
    encrypted: listAt(body, 'include').some((item) => textOf(item) === 'reasoning.encrypted_content'),
    canonical: {
      ...plainRequest,
      model: textAt(body, 'model') ?? null,
      messages: reader.messages,
      tools,
      toolChoice: readToolChoice(body, offered),
      parallelToolCalls: flagAt(body, 'parallel_tool_calls'),
      temperature: numberAt(body, 'temperature'),
      topP: numberAt(body, 'top_p'),
      maxTokens: numberAt(body, 'max_output_tokens'),
      reasoningEffort: readEffort(textAt(member(body, 'reasoning'), 'effort')),
      responseFormatText: responseFormat(member(member(body, 'text'), 'format')),
      streamed: flagAt(body, 'stream') ?? false,
    },
  }
}

function earlier(previous: string | null, memory: DialectMemory) {
  const found = previous === null ? [] : memory.responses.until(previous)
  if (found !== null) return found
  throw new PaddockError('BODY_INVALID_SHAPE', `Previous response with id '${previous}' not found.`, {
    data: { field: 'previous_response_id' },
    fix: 'Send the whole conversation as input; only responses of this session that were stored can be continued.',
  })
}

function readInput(input: LosslessJson | undefined, reader: ItemReader): void {
  if (input === undefined) return
  if (input.kind === 'string') {
    reader.add([{ role: 'user', content: [{ type: 'text', text: input.value }] }], null)
    return
  }
  if (input.kind !== 'array') throw shape('input', 'a string or a list of items')
  for (const [index, item] of input.items.entries()) reader.read(item, `input.${index}`)
}

function responseFormat(format: LosslessJson | undefined): string | null {
  const type = textAt(format, 'type')
  if (type === 'json_object') return '{"type":"json_object"}'
  const schema = member(format, 'schema')
  if (type !== 'json_schema' || schema === undefined) return null
  const name = JSON.stringify(textAt(format, 'name') ?? 'output')
  const strict = flagAt(format, 'strict')
  const tail = strict === null ? '' : `,"strict":${strict}`
  return `{"type":"json_schema","json_schema":{"name":${name},"schema":${stringifyLossless(schema)}${tail}}}`
}
