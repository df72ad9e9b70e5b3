import { PaddockError } from '../../../core/index.ts'
import { SseSplitter } from '../../http/sse.ts'
import type { LooseObject } from '../../session/sampling.ts'
import { type Answer, type ChoiceAnswer, toolCallOf } from '../chat/answer.ts'
import { scanChunk } from '../chat/chunk-scan.ts'
import { readInto, readWholeReply } from '../chat/reply.ts'
import type { ReplyReader, StreamPiece } from '../contract.ts'

/** A step of an answer, in order. */
export type AnswerStep =
  | { readonly kind: 'reasoning' | 'text' | 'refusal'; readonly choice: number; readonly text: string }
  | {
      readonly kind: 'call'
      readonly choice: number
      readonly index: number
      readonly id: string
      readonly name: string
    }
  | { readonly kind: 'arguments'; readonly choice: number; readonly index: number; readonly text: string }

/** Writes an answer as a dialect's events, step by step. One per stream. */
export interface EventWriter {
  /** Before the first step; the prompt's token count is known where the engine tells it. */
  begin(answer: Answer): StreamPiece[]
  step(step: AnswerStep): StreamPiece[]
  /** All choices have ended. */
  end(answer: Answer): StreamPiece[]
}

const done = Buffer.from('[DONE]')
const everything = { wantsLogprobs: true, wantsUsage: true }

/**
 * The engine's chat stream as another dialect's. Each event is parsed before it is written, because its text goes into
 * other events; what is stored is read in the same pass.
 */
export class TranslatedStream implements ReplyReader {
  private readonly answer: Answer
  private readonly writer: EventWriter
  private readonly calls: ToolCallSteps
  private readonly splitter = new SseSplitter()
  private begun = false

  constructor(answer: Answer, writer: EventWriter, mintCallId: () => string) {
    this.answer = answer
    this.writer = writer
    this.calls = new ToolCallSteps(mintCallId)
  }

  cut(chunk: Buffer): StreamPiece[] {
    const pieces: StreamPiece[] = []
    for (const { payload } of this.splitter.push(chunk)) {
      if (payload === null || payload.equals(done)) continue
      const root = readEvent(this.answer, payload)
      if (this.answer.error !== null) continue
      if (!this.begun) {
        this.begun = true
        pieces.push(...this.writer.begin(this.answer))
      }
      for (const step of this.calls.steps(root, this.answer)) pieces.push(...this.writer.step(step))
    }
    return pieces
  }

  read(): void {
    // `cut` has read everything.
  }

  close(): StreamPiece[] {
    const head = this.begun ? [] : this.writer.begin(this.answer)
    return [...head, ...this.writer.end(this.answer)]
  }
}

/** Reads a whole answer of the engine, so that every tool call has an id. */
export function readWhole(body: Buffer, answer: Answer, mintCallId: () => string): void {
  readWholeReply(body, answer, everything)
  for (const choice of answer.choices) for (const call of choice.toolCalls) call.id ??= mintCallId()
}

/** A finished answer as one pass through a writer. */
export function wholeEvents(answer: Answer, writer: EventWriter): Buffer[] {
  const pieces = [...writer.begin(answer)]
  for (const choice of answer.choices) {
    for (const step of choiceSteps(choice)) pieces.push(...writer.step(step))
  }
  pieces.push(...writer.end(answer))
  return pieces.map((piece) => piece.bytes)
}

function choiceSteps(choice: ChoiceAnswer): AnswerStep[] {
  const steps: AnswerStep[] = []
  const text = (kind: 'reasoning' | 'text' | 'refusal', value: string | null) => {
    if (value !== null && value !== '') steps.push({ kind, choice: choice.index, text: value })
  }
  text('reasoning', choice.reasoning)
  text('text', choice.content)
  text('refusal', choice.refusal)
  choice.toolCalls.forEach((call, index) => {
    steps.push({ kind: 'call', choice: choice.index, index, id: call.id ?? '', name: call.name })
    steps.push({ kind: 'arguments', choice: choice.index, index, text: call.arguments })
  })
  return steps
}

function readEvent(answer: Answer, payload: Buffer): LooseObject {
  try {
    return readInto(answer, payload, scanChunk(payload, everything))
  } catch (cause) {
    const start = payload.subarray(0, 80).toString()
    throw new PaddockError('ENGINE_ERROR', `The engine sent an event that is not JSON: ${start}.`, { cause })
  }
}

/** The steps of a chunk. A call is announced once its name is known; arguments that came before wait for it. */
class ToolCallSteps {
  private readonly announced = new Map<string, number>()
  private readonly mintId: () => string

  constructor(mintId: () => string) {
    this.mintId = mintId
  }

  steps(root: LooseObject, answer: Answer): AnswerStep[] {
    const choices = root['choices']
    if (!Array.isArray(choices)) return []
    return choices.flatMap((item: unknown) => {
      const delta = at(item, 'delta')
      const index = at(item, 'index')
      const choice = answer.choices.find((one) => one.index === (typeof index === 'number' ? index : 0))
      return choice === undefined ? [] : [...textSteps(delta, choice), ...this.callSteps(delta, choice)]
    })
  }

  private callSteps(delta: unknown, choice: ChoiceAnswer): AnswerStep[] {
    const calls = at(delta, 'tool_calls')
    if (!Array.isArray(calls)) return []
    const steps: AnswerStep[] = []
    calls.forEach((item: unknown, position) => {
      const given = at(item, 'index')
      const index = typeof given === 'number' ? given : position
      const call = toolCallOf(choice, index)
      if (call === undefined || call.name === '') return
      const key = `${choice.index}/${index}`
      const told = this.announced.get(key)
      if (told === undefined) {
        call.id ??= this.mintId()
        steps.push({ kind: 'call', choice: choice.index, index, id: call.id, name: call.name })
      }
      this.announced.set(key, call.arguments.length)
      const fresh = call.arguments.slice(told ?? 0)
      if (fresh !== '') steps.push({ kind: 'arguments', choice: choice.index, index, text: fresh })
    })
    return steps
  }
}

function textSteps(delta: unknown, choice: ChoiceAnswer): AnswerStep[] {
  const steps: AnswerStep[] = []
  const add = (kind: 'reasoning' | 'text' | 'refusal', value: unknown) => {
    if (typeof value === 'string' && value !== '') steps.push({ kind, choice: choice.index, text: value })
  }
  add('reasoning', at(delta, choice.reasoningName))
  add('text', at(delta, 'content'))
  add('refusal', at(delta, 'refusal'))
  return steps
}

function at(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}
