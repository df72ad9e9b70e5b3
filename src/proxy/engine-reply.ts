import { isPaddockError, PaddockError } from '../core/index.ts'
import type { Answer } from './dialects/chat/answer.ts'
import { isUnparsed } from './dialects/refusal-reasons.ts'
import type { AnswerView, EngineRefusal, ReplyForm, ReplyReader, StreamPiece } from './dialects/contract.ts'

/** How an engine's reply ended. */
export type ReplyEnd =
  | { readonly kind: 'complete'; readonly pieces: readonly StreamPiece[] }
  | { readonly kind: 'refused'; readonly status: number; readonly refusal: EngineRefusal }

const nothing: readonly StreamPiece[] = []
/** Stays empty. */
const noBuffers: Buffer[] = []

/** What the engine says, as it comes: read into the answer, and given in the pieces in which the client gets it. */
export class EngineReply {
  status: number | null = null
  private readonly answer: Answer
  private readonly form: ReplyForm
  private readonly view: AnswerView
  private stream: ReplyReader | null = null
  private retryAfter: string | null = null
  /** Whole bodies and error bodies. */
  private received = noBuffers

  constructor(answer: Answer, form: ReplyForm, view: AnswerView) {
    this.answer = answer
    this.form = form
    this.view = view
  }

  /** The reply comes as events, which may leave as they come. */
  get streams(): boolean {
    return this.stream !== null
  }

  head(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void {
    this.status = status
    const retryAfter = headers['retry-after']
    this.retryAfter = typeof retryAfter === 'string' ? retryAfter : null
    const type = headers['content-type']
    if (status >= 400 || typeof type !== 'string' || !type.startsWith('text/event-stream')) return
    this.stream = this.form.reader(this.answer)
  }

  /** What may be written at once; {@link EngineReply.read} follows the write. Throws `ENGINE_ERROR`. */
  cut(bytes: Buffer): readonly StreamPiece[] {
    if (this.stream !== null) return this.stream.cut(bytes)
    if (bytes.length === 0) return nothing
    // Most answers come in one read and need no list with room for more.
    if (this.received === noBuffers) this.received = [bytes]
    else this.received.push(bytes)
    return nothing
  }

  /** Reads what was cut into the answer. Throws `ENGINE_ERROR`. */
  read(): void {
    this.stream?.read()
  }

  /** Throws `ENGINE_ERROR`, and `ENGINE_DIED` where the answer is not complete. */
  end(): ReplyEnd {
    const [only] = this.received
    const body = only !== undefined && this.received.length === 1 ? only : Buffer.concat(this.received)
    this.received = noBuffers
    const status = this.status ?? 502
    if (status >= 400) return { kind: 'refused', status, refusal: this.form.refusal(status, body, this.retryAfter) }
    if (this.answer.error !== null) {
      const said = this.answer.error['message']
      const message = typeof said === 'string' ? said : 'The engine failed mid-stream.'
      throw new PaddockError(isUnparsed(message) ? 'ENGINE_UNPARSED' : 'ENGINE_ERROR', message)
    }
    if (this.stream === null) {
      const pieces = this.whole(body)
      requireNotAborted(this.answer)
      return { kind: 'complete', pieces }
    }
    requireNotAborted(this.answer)
    // A `[DONE]` is said by whoever stands before the engine too, when that is gone: how an answer ended only a finish reason says.
    if (!this.answer.ended) {
      throw new PaddockError('ENGINE_DIED', 'The engine ended the stream before the answer was complete.')
    }
    return { kind: 'complete', pieces: this.stream.close() }
  }

  /** Nothing more is read. */
  letGo(): void {
    this.stream = null
    this.received = noBuffers
    // Who asks again for a whole answer gets its bytes, or events made of its fields.
    if (!this.view.streamed) this.answer.letMessagesGo()
  }

  /** A whole JSON answer: held as it is, or made into events where the client asked for a stream. */
  private whole(body: Buffer): readonly StreamPiece[] {
    const visible = this.form.whole(body, this.answer)
    if (!this.view.streamed) return [{ ...visible, actionable: true }]
    return this.form.events(this.answer, this.view).map((bytes) => ({ bytes, actionable: true }))
  }
}

/** What Paddock itself aborts it goes on with, and no end is told: this one was ended by somebody else, or by the engine's death. */
function requireNotAborted({ choices }: Answer): void {
  if (choices.every(({ finishReason }) => finishReason !== 'abort' && finishReason !== 'error')) return
  throw new PaddockError('ENGINE_DIED', 'The engine aborted the answer, or failed, before it was complete.', {
    fix: 'Let Paddock pause the engine for new weights (`paddock engine pause`, or the policy route of a trainer); see why the engine aborts.',
  })
}

/** A reply that could not be read is the engine's fault, also where the parser that read it blames a request. */
export function asFailure(cause: unknown): PaddockError {
  if (isPaddockError(cause) && !cause.code.startsWith('BODY_')) return cause
  const why = isPaddockError(cause) ? `: ${cause.message}` : '.'
  return new PaddockError('ENGINE_ERROR', `The answer of the engine could not be read${why}`, { cause })
}
