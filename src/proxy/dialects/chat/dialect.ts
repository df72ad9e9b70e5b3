import type { PaddockError } from '../../../core/index.ts'
import type { AnswerView, Dialect, EngineRefusal, ReplyForm, StreamPiece, WireError } from '../contract.ts'
import type { Answer } from './answer.ts'
import { chatError, chatErrorEvent, engineRefusal } from './errors.ts'
import { readWholeReply, ReplyStream } from './reply.ts'
import { type ChatRequest, readChatRequest } from './request.ts'
import { completionBody, completionEvents } from './synthesise.ts'
import { ToolDeltas } from './tool-deltas.ts'

const keepAlive = Buffer.from(': keep-alive\n\n')
const noHandles = new Map<number, never>()

/** OpenAI's chat completions: the canonical form itself, passed on as the client wrote it. */
export const chatDialect: Dialect = {
  name: 'chat',
  read({ bytes, headers, path }) {
    const chat = readChatRequest(bytes, headers)
    return { path, body: bytes, chat, handles: noHandles, reply: (callId) => new ChatForm(chat, callId) }
  },
  error: chatError,
}

/** A class: the form of an answer lives as long as its session, and closures would be most of its weight. */
class ChatForm implements ReplyForm {
  readonly keepAlive = keepAlive
  readonly requestIdHeader = 'x-request-id'
  private readonly view: AnswerView
  private readonly callId: string
  /** Clients of the AI SDK family want id, type and name on every delta of a tool call. */
  private readonly wantsNames: boolean

  constructor(request: ChatRequest, callId: string) {
    this.view = { streamed: request.streamed, wantsUsage: request.wantsUsage, wantsLogprobs: request.wantsLogprobs }
    this.callId = callId
    // Read now: the form outlives the request.
    this.wantsNames = request.streamed && /\bai-sdk\b|opencode/i.test(request.lineage.userAgent ?? '')
  }

  reader(answer: Answer): ReplyStream {
    return new ReplyStream(answer, this.view, new ToolDeltas(this.wantsNames, callIds(this.callId)))
  }

  whole(body: Buffer, answer: Answer): Omit<StreamPiece, 'actionable'> {
    return readWholeReply(body, answer, this.view)
  }

  body(answer: Answer, view: AnswerView): Buffer {
    return completionBody(answer, view)
  }

  events(answer: Answer, view: AnswerView): Buffer[] {
    return completionEvents(answer, view)
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

/** Ids for tool calls that an engine left without one. */
export function callIds(callId: string): () => string {
  let minted = 0
  return () => `call_${callId.replaceAll('-', '').slice(12)}${(minted += 1)}`
}
