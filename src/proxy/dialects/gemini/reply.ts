import { parseLossless, PaddockError, stringifyLossless } from '../../../core/index.ts'
import type { Handles } from '../../session/echo-handles.ts'
import { type Answer, type ChoiceAnswer, tokenCount } from '../chat/answer.ts'
import { callIds } from '../chat/dialect.ts'
import type { ReplyForm, StreamPiece } from '../contract.ts'
import { type AnswerStep, type EventWriter, readWhole, TranslatedStream, wholeEvents } from '../translate/reply.ts'
import { geminiError, geminiErrorEvent, geminiRefusal } from './errors.ts'

/** What the answer of one call is written from. */
export interface GeminiCall {
  readonly callId: string
  readonly model: string
  readonly thoughts: boolean
  readonly handles: Handles
}

/** The answers of a generateContent call: one `GenerateContentResponse`, or several as events. */
export function geminiForm(call: GeminiCall): ReplyForm {
  const mint = callIds(call.callId)
  const body = (answer: Answer) =>
    Buffer.from(
      responseText(
        call,
        answer,
        answer.choices.map((one) => wholeCandidate(call, one)),
      ),
    )
  return {
    reader: (answer) => new TranslatedStream(answer, new GeminiEvents(call), mint),
    whole: (bytes, answer) => {
      readWhole(bytes, answer, mint)
      return { bytes: body(answer) }
    },
    body,
    events: (answer) => wholeEvents(answer, new GeminiEvents(call)),
    keepAlive: Buffer.from(': keep-alive\n\n'),
    requestIdHeader: 'x-request-id',
    error: (error) => geminiError(error, call.callId),
    errorEvent: geminiErrorEvent,
    refusal: (status, bytes, retryAfter) => geminiRefusal(status, bytes, retryAfter, call.callId),
  }
}

interface ChoiceState {
  call: { readonly index: number; readonly id: string; readonly name: string; argumentsText: string } | null
  reasoning: string
  /** The thinking went out in a signature. */
  signed: boolean
}

class GeminiEvents implements EventWriter {
  private readonly call: GeminiCall
  private readonly choices = new Map<number, ChoiceState>()
  private answer: Answer | null = null

  constructor(call: GeminiCall) {
    this.call = call
  }

  begin(answer: Answer): StreamPiece[] {
    this.answer = answer
    return []
  }

  step(step: AnswerStep): StreamPiece[] {
    const state = this.state(step.choice)
    switch (step.kind) {
      case 'reasoning':
        state.reasoning += step.text
        return this.call.thoughts ? [this.parts(step.choice, JSON.stringify({ text: step.text, thought: true }))] : []
      case 'text':
      case 'refusal':
        return [...this.flushCall(step.choice), this.parts(step.choice, JSON.stringify({ text: step.text }))]
      case 'call': {
        const before = this.flushCall(step.choice)
        state.call = { index: step.index, id: step.id, name: step.name, argumentsText: '' }
        return before
      }
      case 'arguments':
        if (state.call?.index !== step.index) {
          throw new PaddockError('ENGINE_ERROR', 'The engine went back to a tool call after the next one had begun.')
        }
        state.call.argumentsText += step.text
        return []
    }
  }

  /** The last part of each candidate stands beside its finish reason: clients act on that one. */
  end(answer: Answer): StreamPiece[] {
    return answer.choices.map((choice) => {
      const parts = [this.callPart(choice.index), this.lastSignature(choice.index)].filter((part) => part !== null)
      const text = candidateText(choice.index, parts, finishReason(choice))
      return { bytes: event(responseText(this.call, answer, [text])), actionable: true }
    })
  }

  private flushCall(choice: number): StreamPiece[] {
    const part = this.callPart(choice)
    return part === null ? [] : [{ ...this.parts(choice, part), actionable: true }]
  }

  private callPart(choice: number): string | null {
    const state = this.state(choice)
    const { call } = state
    if (call === null) return null
    state.call = null
    const signature = state.signed ? null : signatureOf(this.call, choice, state.reasoning)
    state.signed = true
    return functionCallPart(call, signature)
  }

  /** Thinking before a text alone: its signature comes in an empty part at the end, as Google sends it. */
  private lastSignature(choice: number): string | null {
    const state = this.state(choice)
    const signature = state.signed ? null : signatureOf(this.call, choice, state.reasoning)
    return signature === null ? null : JSON.stringify({ text: '', thoughtSignature: signature })
  }

  private parts(choice: number, part: string): StreamPiece {
    const bytes = event(responseText(this.call, this.answer, [candidateText(choice, [part], null)]))
    return { bytes, actionable: false }
  }

  private state(choice: number): ChoiceState {
    const known = this.choices.get(choice)
    if (known !== undefined) return known
    const fresh: ChoiceState = { call: null, reasoning: '', signed: false }
    this.choices.set(choice, fresh)
    return fresh
  }
}

function wholeCandidate(call: GeminiCall, choice: ChoiceAnswer): string {
  const parts: string[] = []
  const reasoning = choice.reasoning ?? ''
  const signature = signatureOf(call, choice.index, reasoning)
  const calls = choice.toolCalls
  if (reasoning !== '' && call.thoughts) parts.push(JSON.stringify({ text: reasoning, thought: true }))
  const text = `${choice.content ?? ''}${choice.refusal ?? ''}`
  const signedText = signature !== null && calls.length === 0 ? { thoughtSignature: signature } : {}
  if (text !== '' || 'thoughtSignature' in signedText) parts.push(JSON.stringify({ text, ...signedText }))
  calls.forEach((one, index) => {
    const told = { id: one.id ?? '', name: one.name, argumentsText: one.arguments }
    parts.push(functionCallPart(told, index === 0 ? signature : null))
  })
  return candidateText(choice.index, parts, finishReason(choice))
}

function functionCallPart(
  call: { readonly id: string; readonly name: string; readonly argumentsText: string },
  signature: string | null,
): string {
  const head = `{"functionCall":{"id":${JSON.stringify(call.id)},"name":${JSON.stringify(call.name)},"args":${argsText(call.argumentsText)}}`
  return signature === null ? `${head}}` : `${head},"thoughtSignature":${JSON.stringify(signature)}}`
}

/** Arguments as the object that this wire demands; what a model wrote that is none is put into one, not dropped. */
function argsText(argumentsText: string): string {
  if (argumentsText.trim() === '') return '{}'
  try {
    const value = parseLossless(argumentsText)
    if (value.kind === 'object') return stringifyLossless(value)
  } catch {
    // Not JSON: the harness gets the text, and its schema check tells the model.
  }
  return JSON.stringify({ invalid_arguments: argumentsText })
}

function signatureOf(call: GeminiCall, choice: number, reasoning: string): string | null {
  return reasoning === '' ? null : call.handles.mint({ callId: call.callId, choice }, reasoning)
}

/** Google's own chats take a content without parts for a failed one and forget the turn. */
const nothingSaid = ['{"text":""}']

function candidateText(index: number, given: readonly string[], finish: string | null): string {
  const parts = given.length === 0 ? nothingSaid : given
  const end = finish === null ? '' : `,"finishReason":"${finish}"`
  return `{"content":{"parts":[${parts.join(',')}],"role":"model"}${end},"index":${index}}`
}

function responseText(call: GeminiCall, answer: Answer | null, candidates: readonly string[]): string {
  const rest = JSON.stringify({ usageMetadata: usageOf(answer), modelVersion: call.model, responseId: call.callId })
  return `{"candidates":[${candidates.join(',')}],${rest.slice(1)}`
}

function usageOf(answer: Answer | null): object {
  const prompt = answer?.promptIds?.length ?? answer?.claimed('prompt_tokens') ?? 0
  const sampled = answer?.choices.reduce((sum, choice) => sum + tokenCount(choice), 0) ?? 0
  const candidates = answer?.claimed('completion_tokens') ?? sampled
  return { promptTokenCount: prompt, candidatesTokenCount: candidates, totalTokenCount: prompt + candidates }
}

function finishReason(choice: ChoiceAnswer): string {
  if (choice.finishReason === 'length') return 'MAX_TOKENS'
  return choice.finishReason === 'content_filter' ? 'SAFETY' : 'STOP'
}

function event(data: string): Buffer {
  return Buffer.from(`data: ${data}\n\n`)
}
