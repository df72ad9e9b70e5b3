import { parseLossless, PaddockError, stringifyLossless } from '../../../core/index.ts'
import { type Answer, type ChoiceAnswer, tokenCount } from '../chat/answer.ts'
import { callIds } from '../chat/dialect.ts'
import type { DialectMemory, ReplyForm, StreamPiece } from '../contract.ts'
import { answerMessage } from '../translate/answer-message.ts'
import { type AnswerStep, type EventWriter, readWhole, TranslatedStream, wholeEvents } from '../translate/reply.ts'
import { messagesError, messagesErrorEvent, messagesRefusal } from './errors.ts'
import type { MessagesRequest } from './request.ts'
import { messageId } from './threads.ts'

/** What the answer of one call is written from. */
export interface MessagesCall {
  readonly callId: string
  /** As the client asked for it: Claude Code keeps its books by model name. */
  readonly model: string | null
  readonly thinking: MessagesRequest['thinking']
  readonly thread: MessagesRequest['thread']
  readonly memory: Pick<DialectMemory, 'handles' | 'threads'>
}

/** The answers of a Messages call: events as in "Streaming messages" of Anthropic's reference, or one message. */
export function messagesForm(call: MessagesCall): ReplyForm {
  const mint = callIds(call.callId)
  return {
    reader: (answer) => new TranslatedStream(answer, new MessagesEvents(call), mint),
    whole: (body, answer) => {
      readWhole(body, answer, mint)
      return { bytes: messageBody(call, answer) }
    },
    body: (answer) => messageBody(call, answer),
    events: (answer) => wholeEvents(answer, new MessagesEvents(call)),
    keepAlive: event('ping', { type: 'ping' }),
    requestIdHeader: 'request-id',
    error: (error) => messagesError(error, call.callId),
    errorEvent: messagesErrorEvent,
    refusal: (status, body, retryAfter) => messagesRefusal(status, body, retryAfter, call.callId),
  }
}

type OpenBlock = { readonly kind: 'thinking' | 'text' } | { readonly kind: 'tool_use'; readonly call: number }

class MessagesEvents implements EventWriter {
  private readonly call: MessagesCall
  private open: OpenBlock | null = null
  private index = -1
  /** Collected only where it travels in the signature. */
  private reasoning = ''

  constructor(call: MessagesCall) {
    this.call = call
  }

  begin(answer: Answer): StreamPiece[] {
    const message = { ...head(this.call, answer), content: [], stop_reason: null, stop_sequence: null }
    const usage = usageOf(answer)
    return [
      told('message_start', { type: 'message_start', message: { ...message, usage: { ...usage, output_tokens: 0 } } }),
    ]
  }

  step(step: AnswerStep): StreamPiece[] {
    // One choice is all that this wire can carry.
    if (step.choice !== 0) return []
    switch (step.kind) {
      case 'reasoning':
        return this.thinking(step.text)
      case 'text':
      case 'refusal':
        return [
          ...this.enter({ kind: 'text' }, { type: 'text', text: '' }),
          this.delta({ type: 'text_delta', text: step.text }),
        ]
      case 'call':
        return this.enter(
          { kind: 'tool_use', call: step.index },
          { type: 'tool_use', id: step.id, name: step.name, input: {} },
        )
      case 'arguments':
        if (this.open?.kind !== 'tool_use' || this.open.call !== step.index) {
          throw new PaddockError('ENGINE_ERROR', 'The engine went back to a tool call after the next one had begun.')
        }
        return step.text === '' ? [] : [this.delta({ type: 'input_json_delta', partial_json: step.text })]
    }
  }

  end(answer: Answer): StreamPiece[] {
    const choice = answer.choices[0]
    keepTurn(this.call, choice)
    return [
      ...this.leave(),
      told('message_delta', { type: 'message_delta', delta: stopOf(choice), usage: usageOf(answer) }, true),
      told('message_stop', { type: 'message_stop' }, true),
    ]
  }

  private thinking(text: string): StreamPiece[] {
    if (this.call.thinking === 'hidden') return []
    const entered = this.enter({ kind: 'thinking' }, { type: 'thinking', thinking: '', signature: '' })
    if (this.call.thinking === 'shown') return [...entered, this.delta({ type: 'thinking_delta', thinking: text })]
    this.reasoning += text
    return entered
  }

  /** Opens a block, closing the one before where it is another one. */
  private enter(block: OpenBlock, start: object): StreamPiece[] {
    if (this.open?.kind === block.kind && block.kind !== 'tool_use') return []
    const left = this.leave()
    this.open = block
    this.index += 1
    const started = { type: 'content_block_start', index: this.index, content_block: start }
    return [...left, told('content_block_start', started)]
  }

  private leave(): StreamPiece[] {
    const { open } = this
    if (open === null) return []
    this.open = null
    const stop = told('content_block_stop', { type: 'content_block_stop', index: this.index }, open.kind === 'tool_use')
    if (open.kind !== 'thinking') return [stop]
    const signature = signatureOf(this.call, this.reasoning)
    return [this.delta({ type: 'signature_delta', signature }), stop]
  }

  private delta(delta: object): StreamPiece {
    return told('content_block_delta', { type: 'content_block_delta', index: this.index, delta })
  }
}

function messageBody(call: MessagesCall, answer: Answer): Buffer {
  const choice = answer.choices[0]
  keepTurn(call, choice)
  const blocks: string[] = []
  const reasoning = choice?.reasoning ?? ''
  if (reasoning !== '' && call.thinking !== 'hidden') {
    const thinking = call.thinking === 'shown' ? reasoning : ''
    blocks.push(JSON.stringify({ type: 'thinking', thinking, signature: signatureOf(call, reasoning) }))
  }
  const text = `${choice?.content ?? ''}${choice?.refusal ?? ''}`
  if (text !== '') blocks.push(JSON.stringify({ type: 'text', text }))
  for (const tool of choice?.toolCalls ?? []) {
    const [id, name] = [JSON.stringify(tool.id ?? ''), JSON.stringify(tool.name)]
    blocks.push(`{"type":"tool_use","id":${id},"name":${name},"input":${inputText(tool.arguments)}}`)
  }
  const start = JSON.stringify(head(call, answer)).slice(0, -1)
  const rest = JSON.stringify({ ...stopOf(choice), usage: usageOf(answer) }).slice(1)
  return Buffer.from(`${start},"content":[${blocks.join(',')}],${rest}`)
}

/** Arguments as the object that this wire demands; what a model wrote that is none is put into one, not dropped. */
function inputText(argumentsText: string): string {
  if (argumentsText.trim() === '') return '{}'
  try {
    const value = parseLossless(argumentsText)
    if (value.kind === 'object') return stringifyLossless(value)
  } catch {
    // Not JSON: the harness gets the text, and its schema check tells the model.
  }
  return JSON.stringify({ invalid_arguments: argumentsText })
}

function head(call: MessagesCall, answer: Answer): object {
  return {
    id: messageId(call.callId),
    type: 'message',
    role: 'assistant',
    model: call.model ?? answer.model ?? '',
  }
}

/** A complete answer is a turn of its thread, from which the next request goes on. */
function keepTurn({ callId, thread, memory }: MessagesCall, choice: ChoiceAnswer | undefined): void {
  if (thread === null || choice === undefined) return
  memory.threads.put(messageId(callId), {
    ...thread,
    answer: answerMessage(choice),
    handle: { callId, choice: 0 },
  })
}

function signatureOf(call: MessagesCall, reasoning: string): string {
  return call.memory.handles.mint({ callId: call.callId, choice: 0 }, call.thinking === 'signature' ? reasoning : null)
}

/** The engine's own counts; what it reads from its cache is part of `input_tokens`. */
function usageOf(answer: Answer): object {
  return {
    input_tokens: answer.promptIds?.length ?? answer.claimed('prompt_tokens') ?? 0,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: answer.claimed('completion_tokens') ?? tokenCount(answer.choices[0]),
  }
}

function stopOf(choice: ChoiceAnswer | undefined): object {
  const stop = typeof choice?.stopReason === 'string' ? choice.stopReason : null
  return { stop_reason: stopReason(choice, stop), stop_sequence: stop }
}

function stopReason(choice: ChoiceAnswer | undefined, stop: string | null): string {
  if (choice?.finishReason === 'length') return 'max_tokens'
  if (choice?.finishReason === 'content_filter') return 'refusal'
  // Engines say `stop` for calls that a named tool choice forced.
  if ((choice?.toolCalls.length ?? 0) > 0) return 'tool_use'
  return stop === null ? 'end_turn' : 'stop_sequence'
}

function told(name: string, data: object, actionable = false): StreamPiece {
  return { bytes: event(name, data), actionable }
}

function event(name: string, data: object): Buffer {
  return Buffer.from(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)
}
