import { type LosslessJson, stringifyLossless } from '../../../core/index.ts'
import type { ContinuedAnswer } from '../../session/conversation.ts'
import type { Handles } from '../../session/echo-handles.ts'
import type { CanonicalMessage, CanonicalPart, CanonicalToolCall } from '../translate/canonical.ts'
import { toolErrorText } from '../translate/tool-error.ts'
import { flagAt, member, refused, shape, textAt } from '../translate/read.ts'

/** A content block of a message. */
export interface MessagesBlock {
  readonly type: string
  readonly value: LosslessJson
  /** What it is in a user's message. Throws `BODY_INVALID_SHAPE` where it cannot stand there. */
  parts(field: string): CanonicalPart[]
}

/** The blocks of a content, a bare string being one text block. Throws `BODY_INVALID_SHAPE`. */
export function readContent(content: LosslessJson | undefined, field: string): MessagesBlock[] {
  if (content?.kind === 'string') return [toBlock({ kind: 'object', members: textMembers(content) })]
  if (content?.kind !== 'array') throw shape(field, 'a string or a list of content blocks')
  return content.items.map((item) => toBlock(item))
}

function textMembers(content: LosslessJson) {
  const type: LosslessJson = { kind: 'string', value: 'text', raw: '"text"' }
  return [
    { key: 'type', raw: '"type"', value: type },
    { key: 'text', raw: '"text"', value: content },
  ]
}

function toBlock(value: LosslessJson): MessagesBlock {
  const type = textAt(value, 'type') ?? ''
  return { type, value, parts: (field) => userParts(type, value, field) }
}

function userParts(type: string, value: LosslessJson, field: string): CanonicalPart[] {
  const text = textAt(value, 'text')
  if (type === 'text' && text !== undefined) return [{ type: 'text', text }]
  if (type === 'image') return [imagePart(value, field)]
  const source = member(value, 'source')
  const data = textAt(source, 'data')
  if (type === 'document' && textAt(source, 'type') === 'text' && data !== undefined) {
    const title = textAt(value, 'title')
    return [{ type: 'text', text: title === undefined ? data : `${title}\n\n${data}` }]
  }
  if (type === 'document' && textAt(source, 'type') === 'content') {
    const title = textAt(value, 'title')
    const parts = readContent(member(source, 'content'), `${field}.source.content`).flatMap((block) =>
      block.parts(field),
    )
    return title === undefined ? parts : [{ type: 'text', text: title }, ...parts]
  }
  if (type === 'search_result') return searchParts(value, field)
  if (type === 'document') {
    const kind = textAt(source, 'media_type') ?? textAt(source, 'type') ?? 'unknown'
    throw refused(
      field,
      `a document of type ${kind} is not served: no engine reads it`,
      'Extract its text and send it as a document with a source of type text, or its pages as images.',
    )
  }
  throw refused(field, `the content block type ${type === '' ? '(none)' : type} is not served`, 'Send it as text.')
}

function imagePart(value: LosslessJson, field: string): CanonicalPart {
  const source = member(value, 'source')
  const [data, mediaType, url] = [textAt(source, 'data'), textAt(source, 'media_type'), textAt(source, 'url')]
  if (data !== undefined && mediaType !== undefined) {
    return { type: 'image', url: `data:${mediaType};base64,${data}` }
  }
  if (url !== undefined) return { type: 'image', url }
  throw shape(`${field}.source`, 'base64 data with a media_type, or a url')
}

function searchParts(value: LosslessJson, field: string): CanonicalPart[] {
  const head = [textAt(value, 'title'), textAt(value, 'source')].filter((one) => one !== undefined).join('\n')
  const content = readContent(member(value, 'content'), `${field}.content`)
  return [{ type: 'text', text: head }, ...content.flatMap((block) => block.parts(field))]
}

/** A tool's result: its text, and images apart from it. */
export function readToolResult(
  block: MessagesBlock,
  field: string,
): { readonly callId: string; readonly content: readonly CanonicalPart[]; readonly images: readonly CanonicalPart[] } {
  const callId = textAt(block.value, 'tool_use_id')
  if (callId === undefined) throw shape(`${field}.tool_use_id`, 'a string')
  const content = member(block.value, 'content')
  const all = content === undefined ? [] : readContent(content, field).flatMap((one) => one.parts(field))
  const texts = all.filter((part) => part.type === 'text')
  const images = all.filter((part) => part.type === 'image')
  if (flagAt(block.value, 'is_error') !== true) return { callId, content: texts, images }
  const [first, ...rest] = texts
  return { callId, content: [{ type: 'text', text: toolErrorText(first?.text ?? '') }, ...rest], images }
}

/** An assistant's blocks as one message, with the answer that its thinking signature names. */
export function readAssistant(
  blocks: readonly MessagesBlock[],
  field: string,
  handles: Handles,
): {
  readonly message: Extract<CanonicalMessage, { role: 'assistant' }>
  readonly handle: ContinuedAnswer | null
} {
  let text: string | null = null
  let reasoning: string | null = null
  let handle: ContinuedAnswer | null = null
  const toolCalls: CanonicalToolCall[] = []
  for (const { type, value } of blocks) {
    switch (type) {
      case 'text':
        text = (text ?? '') + (textAt(value, 'text') ?? '')
        break
      case 'thinking': {
        const echoed = handles.read(textAt(value, 'signature'))
        if (echoed !== null) handle = { callId: echoed.callId, choice: echoed.choice }
        reasoning = (reasoning ?? '') + (echoed?.reasoning ?? textAt(value, 'thinking') ?? '')
        break
      }
      case 'redacted_thinking': {
        const echoed = handles.read(textAt(value, 'data'))
        if (echoed === null) break
        handle = { callId: echoed.callId, choice: echoed.choice }
        reasoning = (reasoning ?? '') + (echoed.reasoning ?? '')
        break
      }
      case 'tool_use':
        toolCalls.push(toolCall(value, field))
        break
      default:
        throw refused(
          field,
          `the content block type ${type === '' ? '(none)' : type} is not served in an assistant message`,
          'Leave blocks of server-side tools out.',
        )
    }
  }
  return {
    message: {
      role: 'assistant',
      text: text === '' ? null : text,
      reasoning: reasoning === '' ? null : reasoning,
      toolCalls,
    },
    handle,
  }
}

function toolCall(value: LosslessJson, field: string): CanonicalToolCall {
  const [id, name] = [textAt(value, 'id'), textAt(value, 'name')]
  if (id === undefined || name === undefined) throw shape(field, 'a tool_use block with id and name')
  const input = member(value, 'input')
  return { id, name, argumentsText: input === undefined ? '{}' : stringifyLossless(input) }
}
