import type { LosslessJson } from '../../../core/index.ts'
import type { ContinuedAnswer } from '../../session/conversation.ts'
import type { DialectMemory } from '../contract.ts'
import type { CanonicalMessage, CanonicalPart, CanonicalToolCall } from '../translate/canonical.ts'
import { listAt, member, refused, shape, textAt, textOfDataUrl } from '../translate/read.ts'
import { clientCall, clientOutput } from './client-tools.ts'
import { computerCall } from './computer.ts'
import { flatName, freeformArguments } from './tools.ts'

type AssistantMessage = Extract<CanonicalMessage, { role: 'assistant' }>

/**
 * Turns input items into messages. Reasoning, text and calls of one answer are one message again, also where a client
 * puts each call's output right behind it.
 */
export class ItemReader {
  readonly messages: CanonicalMessage[] = []
  readonly handles = new Map<number, ContinuedAnswer>()
  private readonly memory: DialectMemory
  /** Index of the answer that the next item may belong to. */
  private answerAt = -1
  /** Only outputs of tools came after that answer. */
  private answerOpen = false

  constructor(memory: DialectMemory) {
    this.memory = memory
  }

  /** Adds messages that are there already. */
  add(messages: readonly CanonicalMessage[], handle: ContinuedAnswer | null): void {
    for (const message of messages) this.push(message)
    if (handle !== null) this.handles.set(this.messages.length - 1, handle)
  }

  /** Throws `BODY_INVALID_SHAPE` for items of server-side tools and what is not an item. */
  read(item: LosslessJson, field: string): void {
    // Of a reference to an item the type may be left out.
    const isNamed = textAt(item, 'role') === undefined && textAt(item, 'id') !== undefined
    const type = textAt(item, 'type') ?? (isNamed ? 'item_reference' : 'message')
    switch (type) {
      case 'message':
        return this.message(item, field)
      case 'reasoning':
        return this.reasoning(item)
      case 'function_call':
        return this.call(item, field, textAt(item, 'arguments'))
      case 'custom_tool_call': {
        const input = textAt(item, 'input')
        return this.call(item, field, input === undefined ? undefined : freeformArguments(input))
      }
      case 'computer_call':
        return this.computerCall(item, field)
      case 'computer_call_output':
        return this.screenshot(item, field)
      case 'shell_call':
      case 'local_shell_call':
      case 'apply_patch_call':
        return this.clientCall(item, field)
      case 'shell_call_output':
      case 'local_shell_call_output':
      case 'apply_patch_call_output':
        return this.clientOutput(item, field)
      case 'item_reference':
        return this.reference(item, field)
      case 'function_call_output':
      case 'custom_tool_call_output':
        return this.output(item, field)
      default:
        throw refused(field, `the item type ${type} is not served`, 'Leave items of server-side tools out.')
    }
  }

  /** System messages at the top become one: many templates know no second. */
  private push(message: CanonicalMessage): void {
    const [first] = this.messages
    if (message.role === 'system' && this.messages.length === 1 && first?.role === 'system') {
      this.messages[0] = { role: 'system', content: [{ type: 'text', text: `${plain(first)}\n\n${plain(message)}` }] }
      return
    }
    this.messages.push(message)
    this.answerOpen = message.role === 'tool' && this.answerOpen
  }

  private message(item: LosslessJson, field: string): void {
    const role = textAt(item, 'role')
    const content = readParts(member(item, 'content'), `${field}.content`)
    if (role === 'assistant') {
      const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('')
      this.extend({ text, handle: null, fresh: (answer) => answer.text !== null || answer.toolCalls.length > 0 })
    } else if (role === 'user') this.push({ role, content })
    else if (role === 'system' || role === 'developer') this.push({ role: 'system', content })
    else throw shape(`${field}.role`, 'user, assistant, system or developer')
  }

  private reasoning(item: LosslessJson): void {
    const echoed = this.memory.handles.read(textAt(item, 'encrypted_content'))
    const given = listAt(item, 'content')
      .map((part) => textAt(part, 'text') ?? '')
      .join('')
    const reasoning = echoed?.reasoning ?? given
    const handle = echoed === null ? null : { callId: echoed.callId, choice: echoed.choice }
    if (reasoning === '' && handle === null) return
    this.extend({ reasoning, handle, fresh: (answer) => answer.text !== null || answer.toolCalls.length > 0 })
  }

  private call(item: LosslessJson, field: string, argumentsText: string | undefined): void {
    const [id, name] = [textAt(item, 'call_id'), textAt(item, 'name')]
    if (id === undefined || name === undefined || argumentsText === undefined) {
      throw shape(field, 'a call with call_id, name and arguments')
    }
    this.called({ id, name: flatName(name, textAt(item, 'namespace')), argumentsText })
  }

  private computerCall(item: LosslessJson, field: string): void {
    const [id, call] = [textAt(item, 'call_id'), computerCall(item)]
    if (id === undefined || call === null) throw shape(field, 'a call with call_id, and action or actions')
    this.called({ id, ...call })
  }

  private clientCall(item: LosslessJson, field: string): void {
    const [id, call] = [textAt(item, 'call_id'), clientCall(item)]
    if (id === undefined || call === null) throw shape(field, 'a call with call_id, and action or operation')
    this.called({ id, ...call })
  }

  private called(call: CanonicalToolCall): void {
    const { id } = call
    const handle = this.memory.answerOfToolCall(id)
    const behindOutputs = this.answerAt !== this.messages.length - 1
    this.extend({ call, handle, fresh: () => behindOutputs && !this.sameAnswer(handle) })
  }

  /** An item of a stored answer, named by the id under which the client got it (the Vercel AI SDK's default). */
  private reference(item: LosslessJson, field: string): void {
    const id = textAt(item, 'id') ?? ''
    const [, kind, response, index] = /^(rs|msg|fc|ctc|cu|l?sh|apc)_([0-9a-f]{32})(\d+)$/.exec(id) ?? []
    const stored = response === undefined ? null : this.memory.responses.answered(`resp_${response}`)
    if (stored === null) throw unknownItem(id, field)
    const { answer, handle } = stored
    if (handle === null || answer.role !== 'assistant') return
    const { text, reasoning, toolCalls } = answer
    const before = (reasoning === null ? 0 : 1) + (text === null ? 0 : 1)
    const call = kind === 'rs' || kind === 'msg' ? undefined : toolCalls[Number(index) - before]
    const named = { handle, fresh: () => !this.sameAnswer(handle) }
    if (kind === 'rs' && reasoning !== null) this.extend({ reasoning, ...named })
    else if (kind === 'msg' && text !== null) this.extend({ text, ...named })
    else if (call !== undefined) this.extend({ call, ...named })
    else throw unknownItem(id, field)
  }

  private output(item: LosslessJson, field: string): void {
    const callId = textAt(item, 'call_id')
    if (callId === undefined) throw shape(`${field}.call_id`, 'a string')
    const parts = readParts(member(item, 'output'), `${field}.output`)
    this.push({ role: 'tool', callId, content: parts })
  }

  private clientOutput(item: LosslessJson, field: string): void {
    const output = clientOutput(item)
    if (output?.callId === undefined) throw shape(`${field}.call_id`, 'a string')
    this.push({ role: 'tool', callId: output.callId, content: [{ type: 'text', text: output.text }] })
  }

  private screenshot(item: LosslessJson, field: string): void {
    const callId = textAt(item, 'call_id')
    if (callId === undefined) throw shape(`${field}.call_id`, 'a string')
    const url = textAt(member(item, 'output'), 'image_url')
    if (url === undefined) {
      const fix = 'Send the screenshot itself: `image_url` with a data URL.'
      throw refused(`${field}.output`, 'a screenshot that lies elsewhere is not served', fix)
    }
    this.push({ role: 'tool', callId, content: [{ type: 'image', url }] })
  }

  private sameAnswer(handle: ContinuedAnswer | null): boolean {
    const before = this.handles.get(this.answerAt)
    return handle !== null && before?.callId === handle.callId && before.choice === handle.choice
  }

  /** Adds to the open answer, or begins a new one. */
  private extend(part: {
    readonly text?: string
    readonly reasoning?: string
    readonly call?: CanonicalToolCall
    readonly handle: ContinuedAnswer | null
    readonly fresh: (answer: AssistantMessage) => boolean
  }): void {
    const last = this.messages[this.answerAt]
    const open = this.answerOpen && last?.role === 'assistant' && !part.fresh(last) ? last : null
    const before: AssistantMessage = open ?? { role: 'assistant', text: null, reasoning: null, toolCalls: [] }
    const message: AssistantMessage = {
      role: 'assistant',
      text: joined(before.text, part.text),
      reasoning: joined(before.reasoning, part.reasoning),
      toolCalls: part.call === undefined ? before.toolCalls : [...before.toolCalls, part.call],
    }
    if (open === null) {
      this.messages.push(message)
      this.answerAt = this.messages.length - 1
      this.answerOpen = true
    } else this.messages[this.answerAt] = message
    if (part.handle !== null) this.handles.set(this.answerAt, part.handle)
  }
}

function unknownItem(id: string, field: string) {
  return refused(
    field,
    `Item with id '${id}' not found`,
    'Send the item itself; only items of responses of this session that were stored can be named.',
  )
}

function joined(a: string | null, b: string | undefined): string | null {
  return b === undefined || b === '' ? a : (a ?? '') + b
}

function plain(message: CanonicalMessage): string {
  return message.role === 'assistant'
    ? ''
    : message.content.map((part) => (part.type === 'text' ? part.text : '')).join('\n')
}

const textTypes = new Set(['input_text', 'output_text', 'text', 'summary_text', 'reasoning_text'])

/** The parts of a content or output, a bare string being one text. Throws `BODY_INVALID_SHAPE`. */
export function readParts(content: LosslessJson | undefined, field: string): CanonicalPart[] {
  if (content?.kind === 'string') return [{ type: 'text', text: content.value }]
  if (content?.kind !== 'array') throw shape(field, 'a string or a list of content parts')
  return content.items.map((part, index) => {
    const type = textAt(part, 'type') ?? ''
    const text = textAt(part, 'text') ?? textAt(part, 'refusal')
    if ((textTypes.has(type) || type === 'refusal') && text !== undefined) return { type: 'text', text }
    const url = textAt(part, 'image_url')
    if (type === 'input_image' && url !== undefined) return { type: 'image', url }
    if (type === 'input_file') return fileText(part, `${field}.${index}`)
    throw refused(
      `${field}.${index}`,
      `the content part ${type} is not served`,
      'Send text, or an image by URL or data URL.',
    )
  })
}

/** A file that is text stands in the prompt as text; any other one no engine reads. Throws `BODY_INVALID_SHAPE`. */
function fileText(part: LosslessJson, field: string): CanonicalPart {
  const [name, data] = [textAt(part, 'filename'), textAt(part, 'file_data')]
  const text = data === undefined ? null : textOfDataUrl(data)
  if (text !== null) return { type: 'text', text: name === undefined ? text : `${name}\n\n${text}` }
  throw refused(
    field,
    `the file ${name ?? 'without a name'} is not served: no engine reads it`,
    'Extract its text and send it as input_text or as file_data of a text type, or its pages as images.',
  )
}
