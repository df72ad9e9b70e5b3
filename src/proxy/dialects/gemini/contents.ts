import { type LosslessJson, stringifyLossless } from '../../../core/index.ts'
import type { ContinuedAnswer } from '../../session/conversation.ts'
import type { DialectMemory } from '../contract.ts'
import type { CanonicalMessage, CanonicalPart, CanonicalToolCall } from '../translate/canonical.ts'
import { flagAt, isTextType, listAt, member, refused, shape, textAt, textOfBase64 } from '../translate/read.ts'
import { toolErrorText } from '../translate/tool-error.ts'

/** A member under its JSON name, or under its protobuf name, which Google's servers take as well. */
export function fieldOf(value: LosslessJson | undefined, name: string): LosslessJson | undefined {
  return (
    member(value, name) ??
    member(
      value,
      name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    )
  )
}

/** What was read of an answer so far. */
interface OpenAnswer {
  readonly at: number
  text: string | null
  thoughts: string | null
  signed: string | null
  readonly toolCalls: CanonicalToolCall[]
}

/** Turns contents into messages. */
export class ContentReader {
  readonly messages: CanonicalMessage[] = []
  readonly handles = new Map<number, ContinuedAnswer>()
  private readonly memory: DialectMemory
  /** Calls whose response is still to come, oldest first: clients may leave ids out, names and order remain. */
  private readonly waiting: { readonly id: string; readonly name: string }[] = []
  private unnamed = 0
  /** The answer that the last content of the model was of, while nothing but responses to its calls came behind it. */
  private open: OpenAnswer | null = null
  /** Such responses came. */
  private isAnswered = false

  constructor(memory: DialectMemory) {
    this.memory = memory
  }

  /** Throws `BODY_INVALID_SHAPE` for parts of server-side tools and what is not a content. */
  read(content: LosslessJson, field: string): void {
    const role = textAt(content, 'role') ?? 'user'
    const parts = listAt(content, 'parts')
    if (role === 'model') return this.model(parts, field)
    this.isAnswered = parts.length > 0 && parts.every((part) => fieldOf(part, 'functionResponse') !== undefined)
    if (!this.isAnswered) this.open = null
    if (role === 'user' || role === 'function') this.user(parts, field)
    else throw shape(`${field}.role`, 'user or model')
  }

  /**
   * Clients keep the pieces of a stream as contents of their own: until a user speaks, they are one turn. ADK puts the
   * response to each of several calls right behind it: their ids say that they are of one answer.
   */
  private model(parts: readonly LosslessJson[], field: string): void {
    if (this.isAnswered && !this.areOfOpen(parts)) this.open = null
    this.isAnswered = false
    const answer = this.open ?? { at: this.messages.length, text: null, thoughts: null, signed: null, toolCalls: [] }
    this.open = answer
    for (const [index, part] of parts.entries()) {
      const echoed = this.memory.handles.read(fieldText(part, 'thoughtSignature'))
      if (echoed !== null) {
        answer.signed = echoed.reasoning
        this.handles.set(answer.at, { callId: echoed.callId, choice: echoed.choice })
      }
      const call = fieldOf(part, 'functionCall')
      const said = textAt(part, 'text')
      if (call !== undefined) answer.toolCalls.push(this.call(call, `${field}.parts.${index}`))
      else if (said === undefined) throw unserved(part, `${field}.parts.${index}`)
      else if (flagAt(part, 'thought') === true) answer.thoughts = (answer.thoughts ?? '') + said
      else if (said !== '') answer.text = (answer.text ?? '') + said
    }
    const { at, text, thoughts, signed, toolCalls } = answer
    this.messages[at] = { role: 'assistant', text, reasoning: signed ?? thoughts, toolCalls }
  }

  /** Calls that the model made in the same answer as those of the open one. */
  private areOfOpen(parts: readonly LosslessJson[]): boolean {
    const ids = parts.map((part) => textAt(fieldOf(part, 'functionCall'), 'id'))
    const answers = [this.open?.toolCalls[0]?.id, ...ids].map((id) =>
      id === undefined ? null : this.memory.answerOfToolCall(id),
    )
    const [first] = answers
    return answers.every((one) => one != null && one.callId === first?.callId && one.choice === first.choice)
  }

  private call(call: LosslessJson, field: string): CanonicalToolCall {
    const name = textAt(call, 'name')
    if (name === undefined) throw shape(`${field}.functionCall.name`, 'a string')
    const id = textAt(call, 'id') ?? `call_${(this.unnamed += 1)}`
    this.waiting.push({ id, name })
    const args = member(call, 'args')
    return { id, name, argumentsText: args === undefined ? '{}' : stringifyLossless(args) }
  }

  private user(parts: readonly LosslessJson[], field: string): void {
    const content: CanonicalPart[] = []
    let responses = 0
    for (const [index, part] of parts.entries()) {
      const response = fieldOf(part, 'functionResponse')
      if (response === undefined) {
        content.push(userPart(part, `${field}.parts.${index}`))
        continue
      }
      responses += 1
      const callId = this.answered(response, `${field}.parts.${index}`)
      const text = responseText(member(response, 'response'))
      const media = listAt(response, 'parts').map((one, at) => userPart(one, `${field}.parts.${index}.parts.${at}`))
      this.messages.push({ role: 'tool', callId, content: [{ type: 'text', text }, ...media] })
    }
    if (content.length > 0 || responses === 0) this.messages.push({ role: 'user', content })
  }

  private answered(response: LosslessJson, field: string): string {
    const [id, name] = [textAt(response, 'id'), textAt(response, 'name')]
    const at = this.waiting.findIndex((call) => (id === undefined ? call.name === name : call.id === id))
    const [call] = at === -1 ? [] : this.waiting.splice(at, 1)
    const callId = id ?? call?.id
    if (callId === undefined) throw shape(`${field}.functionResponse`, 'the response to a function call before it')
    return callId
  }
}

/** `output` and `error` are the names that Google's documentation gives to what a function returns. */
function responseText(response: LosslessJson | undefined): string {
  if (response === undefined) return ''
  const only = response.kind === 'object' && response.members.length === 1
  const [output, error] = [textAt(response, 'output'), textAt(response, 'error')]
  if (only && output !== undefined) return output
  if (only && error !== undefined) return toolErrorText(error)
  return stringifyLossless(response)
}

function fieldText(value: LosslessJson, name: string): string | undefined {
  const found = fieldOf(value, name)
  return found?.kind === 'string' ? found.value : undefined
}

function userPart(part: LosslessJson, field: string): CanonicalPart {
  const text = textAt(part, 'text')
  if (text !== undefined) return { type: 'text', text }
  const inline = fieldOf(part, 'inlineData')
  const [data, mimeType] = [textAt(inline, 'data'), inline === undefined ? undefined : fieldText(inline, 'mimeType')]
  if (data !== undefined && mimeType?.startsWith('image/') === true) {
    return { type: 'image', url: `data:${mimeType};base64,${data}` }
  }
  const inlined = data !== undefined && mimeType !== undefined && isTextType(mimeType) ? textOfBase64(data) : null
  if (inlined !== null) return { type: 'text', text: inlined }
  if (mimeType !== undefined) {
    throw refused(
      field,
      `inline data of type ${mimeType} is not served: no engine reads it`,
      'Extract its text and send it as text, or its pages as images.',
    )
  }
  throw unserved(part, field)
}

function unserved(part: LosslessJson, field: string) {
  const kinds = part.kind === 'object' ? part.members.map((one) => one.key).join(', ') : part.kind
  return refused(
    field,
    `a part of ${kinds === '' ? 'nothing' : kinds} is not served`,
    'Send text, images as inlineData, and functions.',
  )
}

/** The texts of an instruction: a content, or a bare string. */
export function instructionText(instruction: LosslessJson | undefined): string {
  if (instruction?.kind === 'string') return instruction.value
  return listAt(instruction, 'parts')
    .map((part) => textAt(part, 'text') ?? '')
    .filter((text) => text !== '')
    .join('\n\n')
}
