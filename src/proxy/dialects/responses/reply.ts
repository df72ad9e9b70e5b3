import { PaddockError } from '../../../core/index.ts'
import type { LooseObject } from '../../session/sampling.ts'
import type { Answer } from '../chat/answer.ts'
import { callIds } from '../chat/dialect.ts'
import { chatError, engineRefusal } from '../chat/errors.ts'
import type { ReplyForm, StreamPiece } from '../contract.ts'
import { type AnswerStep, type EventWriter, readWhole, TranslatedStream, wholeEvents } from '../translate/reply.ts'
import {
  callItem,
  endOf,
  messageItem,
  outputOf,
  reasoningItem,
  responseId,
  responseObject,
  type ResponsesCall,
  shelve,
  textPart,
} from './output.ts'
import type { OfferedTool } from './tools.ts'

/** The answers of a Responses call: events as in OpenAI's reference "Streaming events", or one response object. */
export function responsesForm(call: ResponsesCall): ReplyForm {
  const mint = callIds(call.callId)
  const body = (answer: Answer) => {
    const response = responseObject(call, answer, { ...endOf(answer), output: outputOf(call, answer) })
    shelve(call, answer, response)
    return Buffer.from(JSON.stringify(response))
  }
  let began = false
  return {
    reader: (answer) => {
      const events = new ResponsesEvents(call)
      events.began = () => {
        began = true
      }
      return new TranslatedStream(answer, events, mint)
    },
    whole: (bytes, answer) => {
      readWhole(bytes, answer, mint)
      return { bytes: body(answer) }
    },
    body,
    events: (answer) => wholeEvents(answer, new ResponsesEvents(call)),
    keepAlive: Buffer.from(': keep-alive\n\n'),
    requestIdHeader: 'x-request-id',
    error: (error) => chatError(error, call.callId),
    errorEvent: (error) => failedEvents(call, error, began),
    refusal: (status, bytes, retryAfter) => engineRefusal(status, bytes, retryAfter, call.callId),
  }
}

/**
 * Codex acts on `response.failed`, the SDKs on `error`; the sequence restarts, because nobody follows it that far. A
 * stream that was only kept alive begins first: the official client reads nothing before `response.created`.
 */
function failedEvents(call: ResponsesCall, error: PaddockError, began: boolean): Buffer {
  const message = `${error.message.replace(/\.$/, '')}. Fix: ${error.fix}`
  const response = {
    id: responseId(call),
    object: 'response',
    status: 'failed',
    output: [],
    error: { code: error.code, message },
  }
  const created = { response: { ...response, status: 'in_progress', error: null }, sequence_number: 0 }
  return Buffer.concat([
    ...(began ? [] : [event('response.created', created)]),
    event('response.failed', { response, sequence_number: 1 }),
    event('error', { code: error.code, message, param: null, sequence_number: 2 }),
  ])
}

type OpenItem =
  | { readonly kind: 'reasoning' | 'text'; text: string }
  | {
      readonly kind: 'call'
      readonly call: number
      readonly id: string
      readonly name: string
      readonly form: OfferedTool['kind']
      text: string
    }

class ResponsesEvents implements EventWriter {
  /** Told when the stream's first event is written. */
  began: () => void = () => {}
  private readonly call: ResponsesCall
  private open: OpenItem | null = null
  private index = -1
  private sequence = -1

  constructor(call: ResponsesCall) {
    this.call = call
  }

  begin(answer: Answer): StreamPiece[] {
    this.began()
    const response = responseObject(this.call, answer, { status: 'in_progress', output: [] })
    return [this.told('response.created', { response }), this.told('response.in_progress', { response })]
  }

  step(step: AnswerStep): StreamPiece[] {
    // One choice is all that this wire can carry.
    if (step.choice !== 0) return []
    switch (step.kind) {
      case 'reasoning':
        return [...this.enterText('reasoning'), this.textDelta('response.reasoning_text.delta', step.text)]
      case 'text':
      case 'refusal':
        return [...this.enterText('text'), this.textDelta('response.output_text.delta', step.text)]
      case 'call':
        return this.enterCall(step.index, step.id, step.name)
      case 'arguments':
        return this.callArguments(step.index, step.text)
    }
  }

  end(answer: Answer): StreamPiece[] {
    const left = this.leave(endOf(answer).status)
    const { status, reason } = endOf(answer)
    const response = responseObject(this.call, answer, { status, reason, output: outputOf(this.call, answer) })
    shelve(this.call, answer, response)
    return [...left, this.told(`response.${status}`, { response }, true)]
  }

  private enterText(kind: 'reasoning' | 'text'): StreamPiece[] {
    if (this.open?.kind === kind) return []
    const left = this.leave('completed')
    this.open = { kind, text: '' }
    this.index += 1
    const item =
      kind === 'reasoning'
        ? reasoningItem(this.call, this.index, '', 'in_progress')
        : messageItem(this.call, this.index, null, 'in_progress')
    const part = kind === 'reasoning' ? { type: 'reasoning_text', text: '' } : textPart('')
    return [
      ...left,
      this.told('response.output_item.added', { output_index: this.index, item }),
      this.part('added', item, part),
    ]
  }

  private textDelta(name: string, delta: string): StreamPiece {
    const { open } = this
    if (open !== null) open.text += delta
    const item_id = this.itemId()
    const place = { item_id, output_index: this.index, content_index: 0 }
    return this.told(name, { ...place, delta, ...(open?.kind === 'text' ? { logprobs: [] } : {}) })
  }

  private enterCall(index: number, id: string, name: string): StreamPiece[] {
    const left = this.leave('completed')
    const form = this.call.request.offered.get(name)?.kind ?? 'function'
    this.open = { kind: 'call', call: index, id, name, form, text: '' }
    this.index += 1
    const item = callItem(this.call, this.index, { id, name, argumentsText: '' }, 'in_progress')
    return [...left, this.told('response.output_item.added', { output_index: this.index, item })]
  }

  private callArguments(index: number, delta: string): StreamPiece[] {
    const { open } = this
    if (open?.kind !== 'call' || open.call !== index) {
      throw new PaddockError('ENGINE_ERROR', 'The engine went back to a tool call after the next one had begun.')
    }
    open.text += delta
    // What a freeform tool or one of the client's own is told is a part of the arguments: it is known when they are whole.
    if (open.form !== 'function' || delta === '') return []
    const place = { item_id: this.itemId(), output_index: this.index }
    return [this.told('response.function_call_arguments.delta', { ...place, delta })]
  }

  /** Closes the open item. Of the last one the answer's status says whether it is whole. */
  private leave(status: string): StreamPiece[] {
    const { open } = this
    if (open === null) return []
    const pieces = open.kind === 'call' ? this.leaveCall(open, status) : this.leaveText(open, status)
    this.open = null
    return pieces
  }

  private leaveText(open: Extract<OpenItem, { kind: 'reasoning' | 'text' }>, status: string): StreamPiece[] {
    const reasoning = open.kind === 'reasoning'
    const item = reasoning
      ? reasoningItem(this.call, this.index, open.text, 'completed')
      : messageItem(this.call, this.index, open.text, status)
    const place = { item_id: item['id'], output_index: this.index, content_index: 0 }
    const name = reasoning ? 'response.reasoning_text.done' : 'response.output_text.done'
    return [
      this.told(name, { ...place, text: open.text, ...(reasoning ? {} : { logprobs: [] }) }),
      this.part('done', item, reasoning ? { type: 'reasoning_text', text: open.text } : textPart(open.text)),
      this.told('response.output_item.done', { output_index: this.index, item }),
    ]
  }

  private leaveCall(open: Extract<OpenItem, { kind: 'call' }>, status: string): StreamPiece[] {
    const item = callItem(this.call, this.index, { id: open.id, name: open.name, argumentsText: open.text }, status)
    const place = { item_id: item['id'], output_index: this.index }
    const done = { output_index: this.index, item }
    if (open.form === 'client') return [this.told('response.output_item.done', done, true)]
    if (open.form === 'custom') {
      const input = item['input']
      return [
        this.told('response.custom_tool_call_input.delta', { ...place, delta: input }),
        this.told('response.custom_tool_call_input.done', { ...place, input }),
        this.told('response.output_item.done', done, true),
      ]
    }
    return [
      this.told('response.function_call_arguments.done', { ...place, name: item['name'], arguments: open.text }),
      this.told('response.output_item.done', done, true),
    ]
  }

  private part(phase: 'added' | 'done', item: LooseObject, part: LooseObject): StreamPiece {
    const place = { item_id: item['id'], output_index: this.index, content_index: 0 }
    return this.told(`response.content_part.${phase}`, { ...place, part })
  }

  private itemId(): unknown {
    const { open } = this
    if (open?.kind === 'call') {
      return callItem(this.call, this.index, { id: open.id, name: open.name, argumentsText: '' }, '')['id']
    }
    return (open?.kind === 'reasoning' ? reasoningItem : messageItem)(this.call, this.index, '', '')['id']
  }

  private told(name: string, data: LooseObject, actionable = false): StreamPiece {
    this.sequence += 1
    return { bytes: event(name, { ...data, sequence_number: this.sequence }), actionable }
  }
}

function event(type: string, data: LooseObject): Buffer {
  return Buffer.from(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`)
}
