import { EngineError, validationError } from '../errors.ts'
import { imageText, isImage } from './images.ts'
import { dumpJson, parseJson } from '../json/lossless.ts'
import { readList, readObject, readText } from '../json/read.ts'
import type { Json, JsonObject } from '../json/lossless.ts'

/** One message as a chat template sees it. */
export interface TemplateMessage {
  readonly role: string
  readonly content: string
  readonly reasoning: string
  readonly tool_calls: readonly TemplateCall[] | undefined
}

/** A tool call in a template: both parts are JSON text already, so that no number is ever rewritten. */
export interface TemplateCall {
  readonly name_json: string
  readonly arguments: string
}

/**
 * The messages of a chat request as templates take them, after vLLM's normalisation
 * (`vllm/entrypoints/chat_utils.py`): text parts are joined by newlines, argument strings are read as JSON and written
 * again in Python's spacing, `reasoning` and the older `reasoning_content` are one field.
 * Throws a 400 for a message that is no object, for media that the model does not take, and for arguments that are no
 * JSON.
 */
export function templateMessages(messages: readonly Json[], takesImages: boolean): TemplateMessage[] {
  return messages.map((message, index) => {
    if (!(message instanceof Map)) throw validationError('Input should be a valid dictionary', `messages.${index}`)
    const role = readText(message, 'role')
    if (role === undefined) throw validationError('Field required', `messages.${index}.role`)
    const calls = readList(message, 'tool_calls')
    return {
      role,
      content: textOf(message.get('content') ?? null, index, takesImages),
      reasoning: (readText(message, 'reasoning') ?? readText(message, 'reasoning_content') ?? '').replaceAll(
        /^\n+|\n+$/g,
        '',
      ),
      tool_calls:
        calls === undefined || calls.length === 0 ? undefined : calls.map((call) => templateCall(call, index)),
    }
  })
}

/** Tool definitions of a request as one line of JSON each, in the order they were offered. */
export function templateTools(tools: readonly Json[]): string[] {
  return tools.map((tool) => dumpJson(tool))
}

function textOf(content: Json, index: number, takesImages: boolean): string {
  if (content === null) return ''
  if (typeof content === 'string') return content
  if (!Array.isArray(content))
    throw validationError('Input should be a valid string or list', `messages.${index}.content`)
  return content.map((part) => partText(part, index, takesImages)).join('\n')
}

function partText(part: Json, index: number, takesImages: boolean): string {
  if (typeof part === 'string') return part
  if (isImage(part) && takesImages) return imageText(part, index)
  if (isImage(part)) throw new EngineError('At most 0 image(s) may be provided in one prompt.', { param: 'messages' })
  const text = part instanceof Map ? (readText(part, 'text') ?? readText(part, 'refusal')) : undefined
  if (text !== undefined) return text
  throw new EngineError(`messages.${index}.content: this engine reads text and images only`, { param: 'messages' })
}

function templateCall(call: Json, index: number): TemplateCall {
  const fn: JsonObject | undefined = call instanceof Map ? readObject(call, 'function') : undefined
  const name = fn === undefined ? undefined : readText(fn, 'name')
  if (fn === undefined || name === undefined) {
    throw validationError('Field required', `messages.${index}.tool_calls.function.name`)
  }
  const given = fn.get('arguments') ?? new Map<string, Json>()
  return {
    name_json: JSON.stringify(name),
    arguments: dumpJson(typeof given === 'string' ? parsedArguments(given, index) : given),
  }
}

function parsedArguments(text: string, index: number): Json {
  if (text === '') return new Map()
  try {
    return parseJson(text)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new EngineError(`messages.${index}.tool_calls: arguments are not JSON: ${reason}`, { param: 'messages' })
  }
}
