import { PaddockError } from '../../../core/index.ts'
import { SseSplitter } from '../../http/sse.ts'
import type { LooseObject } from '../../session/sampling.ts'
import { type Answer, parseEngineJson } from '../chat/answer.ts'
import { chatError, chatErrorEvent, engineRefusal } from '../chat/errors.ts'
import type { AnswerView, EngineRefusal, ReplyForm, ReplyReader, StreamPiece, WireError } from '../contract.ts'
import { TextCompletion } from './text-completion.ts'

const keepAlive = Buffer.from(': keep-alive\n\n')
const done = Buffer.from('data: [DONE]\n\n')

/** The engine's own words, passed on as they are; read for their text and their counts only. */
export class BesideForm implements ReplyForm {
  readonly keepAlive = keepAlive
  readonly requestIdHeader = 'x-request-id'
  private readonly wantsUsage: boolean
  private readonly callId: string
  private readonly completion = new TextCompletion()

  constructor(wantsUsage: boolean, callId: string) {
    this.wantsUsage = wantsUsage
    this.callId = callId
  }

  reader(answer: Answer): ReplyReader {
    return new BesideStream(answer, this.completion, this.wantsUsage)
  }

  whole(body: Buffer, answer: Answer): Omit<StreamPiece, 'actionable'> {
    const root = parseEngineJson(body)
    if (root === null) throw new PaddockError('ENGINE_ERROR', 'The engine sent an answer that is not a JSON object.')
    this.completion.add(root)
    answer.add(asChat(root))
    return { bytes: body }
  }

  body(): Buffer {
    return Buffer.from(JSON.stringify(this.completion.whole()))
  }

  events(_answer: Answer, view: AnswerView): Buffer[] {
    return [...this.completion.chunks(view.wantsUsage).map(event), done]
  }

  error(error: PaddockError): WireError {
    return chatError(error, this.callId)
  }

  errorEvent(error: PaddockError): Buffer {
    return chatErrorEvent(error)
  }

  refusal(status: number, body: Buffer, retryAfter: string | null): EngineRefusal {
    return engineRefusal(status, body, retryAfter, this.callId)
  }
}

class BesideStream implements ReplyReader {
  private readonly answer: Answer
  private readonly completion: TextCompletion
  private readonly wantsUsage: boolean
  private readonly splitter = new SseSplitter()
  private unread: LooseObject[] = []

  constructor(answer: Answer, completion: TextCompletion, wantsUsage: boolean) {
    this.answer = answer
    this.completion = completion
    this.wantsUsage = wantsUsage
  }

  cut(chunk: Buffer): StreamPiece[] {
    return this.splitter.push(chunk).flatMap(({ bytes, payload }): StreamPiece[] => {
      if (payload === null) return []
      if (payload.toString() === '[DONE]') return [{ bytes, actionable: true }]
      const root = parseEngineJson(payload)
      if (root === null) throw new PaddockError('ENGINE_ERROR', 'The engine sent an event that is not a JSON object.')
      this.unread.push(root)
      const isUsageOnly = Array.isArray(root['choices']) && root['choices'].length === 0
      // An error inside the stream is told by the proxy in its own words.
      if (root['error'] !== undefined || (isUsageOnly && !this.wantsUsage)) return []
      return [{ bytes, actionable: finishes(root) }]
    })
  }

  read(): void {
    for (const root of this.unread.splice(0)) {
      this.completion.add(root)
      this.answer.add(asChat(root))
    }
  }

  close(): StreamPiece[] {
    return []
  }
}

/** A text completion as a piece of a chat answer; tokens of a prompt that no template rendered are left out. */
function asChat(root: LooseObject): LooseObject {
  const { choices, ...rest } = root
  if (!Array.isArray(choices)) return rest
  return {
    ...rest,
    choices: choices.filter(isObject).map(({ index, text, finish_reason, stop_reason }) => ({
      index,
      delta: { content: text },
      finish_reason,
      stop_reason,
    })),
  }
}

function finishes({ choices }: LooseObject): boolean {
  return (
    Array.isArray(choices) && choices.some((choice) => isObject(choice) && typeof choice['finish_reason'] === 'string')
  )
}

function event(root: LooseObject): Buffer {
  return Buffer.from(`data: ${JSON.stringify(root)}\n\n`)
}

function isObject(value: unknown): value is LooseObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
