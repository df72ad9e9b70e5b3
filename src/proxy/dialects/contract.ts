import type { IncomingHttpHeaders } from 'node:http'
import type { BesideClass, Id, PaddockError } from '../../core/index.ts'
import type { Handles } from '../session/echo-handles.ts'
import type { ContinuedAnswer } from '../session/conversation.ts'
import type { Answer } from './chat/answer.ts'
import type { ByteEdit } from './chat/chunk-scan.ts'
import type { ChatRequest } from './chat/request.ts'
import type { MessageThreads } from './messages/threads.ts'
import type { ResponseCache } from './responses/response-cache.ts'

/**
 * A wire API that harnesses speak. The canonical form between all of them is the chat completion: a dialect turns its
 * own request into one, and an engine's chat answer into its own events. Plain object; it keeps nothing between calls.
 */
export interface Dialect {
  readonly name: 'chat' | 'responses' | 'messages' | 'gemini' | 'completions' | 'embeddings'
  /** The class of its calls where they stand beside the conversation. Absent: what a call is, its place among the others says. */
  readonly beside?: BesideClass
  /** Reads a generation request. Throws `BODY_INVALID_JSON`, `BODY_INVALID_SHAPE`. */
  read(input: DialectInput): DialectRequest
  /** The answer of the counting route, for dialects that have one. */
  countBody?(tokens: number): Buffer
  /** An error in the dialect's own shape, where no call is running yet. */
  error(error: PaddockError, requestId?: string): WireError
}

export interface DialectInput {
  /** The decoded body. */
  readonly bytes: Buffer
  readonly headers: IncomingHttpHeaders
  /** Path of the route without session prefix and query. */
  readonly path: string
  /** Milliseconds since 1970. */
  readonly now: number
  /** What the session remembers on behalf of the dialects. */
  readonly memory: DialectMemory
}

/** What a session remembers so that a stateless wire can be continued. */
export interface DialectMemory {
  readonly handles: Handles
  readonly responses: Pick<ResponseCache, 'put' | 'until' | 'answered'>
  readonly threads: Pick<MessageThreads, 'put' | 'until'>
  /** The answer that made a tool call, by the id that the client was given. */
  answerOfToolCall(id: string): ContinuedAnswer | null
  /** Name under which this session's engine writes thinking; the canonical history uses the same. */
  readonly reasoningName: 'reasoning' | 'reasoning_content'
}

/** A request, read. */
export interface DialectRequest {
  /** As recorded: the route without session prefix. */
  readonly path: string
  /** The harness's body, byte for byte. */
  readonly body: Buffer
  /** The canonical request: what the engine is asked. */
  readonly chat: ChatRequest
  /** Answers that the request gives back by an echo handle, by index of the canonical message. */
  readonly handles: ReadonlyMap<number, ContinuedAnswer>
  /** How the answer of this call is written. */
  reply(callId: Id): ReplyForm
}

/** How a client wants its answer. */
export interface AnswerView {
  readonly streamed: boolean
  readonly wantsUsage: boolean
  readonly wantsLogprobs: boolean
}

/** A piece of a stream on its way to the client. */
export interface StreamPiece {
  readonly bytes: Buffer
  /** What of them the client does not see: left out when they are copied. */
  readonly edits?: readonly ByteEdit[]
  /** A client may act on it: it is held until its tokens are committed (invariant I5). */
  readonly actionable: boolean
}

/** The engine's stream on its way to the client. */
export interface ReplyReader {
  /** What may be written at once. Throws `ENGINE_ERROR` where an event is not JSON. */
  cut(chunk: Buffer): StreamPiece[]
  /** Reads what was cut into the answer; called after the write. */
  read(): void
  /** What a complete answer still owes its client when the engine has ended. */
  close(): StreamPiece[]
}

/** Writes the answer of one call in the dialect's form. */
export interface ReplyForm {
  /** Reads a streamed answer of the engine into `answer`. */
  reader(answer: Answer): ReplyReader
  /** Reads a whole answer of the engine into `answer`; gives what a client gets that asked for no stream. */
  whole(body: Buffer, answer: Answer): Omit<StreamPiece, 'actionable'>
  /** A finished answer as a whole body. */
  body(answer: Answer, view: AnswerView): Buffer
  /** A finished answer as the events of a stream, its end included. */
  events(answer: Answer, view: AnswerView): Buffer[]
  /** Bytes that keep a silent stream open and mean nothing. */
  readonly keepAlive: Buffer
  /** The response header that names the call. */
  readonly requestIdHeader: string
  error(error: PaddockError): WireError
  /** The same error inside a stream that has begun. */
  errorEvent(error: PaddockError): Buffer
  /** What the engine said instead of an answer. */
  refusal(status: number, body: Buffer, retryAfter: string | null): EngineRefusal
}

/** An error as it goes over the wire. */
export interface WireError {
  readonly status: number
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string>>
}

/** What an engine said instead of an answer, in the dialect's shape, with the engine's own status and message. */
export interface EngineRefusal {
  readonly error: PaddockError
  readonly wire: WireError
  readonly code: string
  readonly message: string
  /** Members of the request that the engine refuses; empty: it refuses for another reason. */
  readonly blames: readonly string[]
}
