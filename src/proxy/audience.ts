import type { PaddockError } from '../core/index.ts'
import type { ReplyMark } from '../trajectory/index.ts'
import type { Answer } from './dialects/chat/answer.ts'
import type { AnswerView, ReplyForm, StreamPiece, WireError } from './dialects/contract.ts'
import type { Client } from './http/client.ts'
import { ReplyLog } from './reply-log.ts'

const noEdits: NonNullable<StreamPiece['edits']> = []

/** An error in both forms: as a body of its own, and inside a stream that has begun. */
export interface ToldFailure {
  readonly error: PaddockError
  readonly wire: WireError
}

/**
 * The clients of one call and the bytes that they may see, in order. Bytes from the first actionable one on are held
 * until `deliver`. A client that asks in the form in which the answer comes follows it live; any other one gets the
 * finished answer in its own form.
 */
export class Audience {
  private clients: Client[] = []
  private readonly view: AnswerView
  private readonly form: ReplyForm
  private readonly out = new ReplyLog()
  /** Where the held bytes begin, -1 while there are none. */
  private heldFrom = -1
  private writtenTo = 0
  /** Live bytes may go out: the intent is stored and the engine streams. */
  private live = false

  constructor(view: AnswerView, form: ReplyForm) {
    this.view = view
    this.form = form
  }

  /** A client waits on an open connection. */
  get attended(): boolean {
    for (const client of this.clients) if (!client.gone) return true
    return false
  }

  /** Some client has got its head: an error can only be told in-stream. */
  get started(): boolean {
    for (const client of this.clients) if (client.started) return true
    return false
  }

  /** Adds a client and, where it follows, gives it what the others have seen. */
  join(client: Client): void {
    this.clients = [...this.clients, client]
    if (!this.live || !this.follows(client)) return
    client.startStream()
    if (this.writtenTo > 0) client.write(this.out.memory, 0, this.writtenTo)
  }

  /** Takes a piece of the reply. */
  add({ bytes, edits, actionable }: StreamPiece, atMs: number): void {
    if (actionable && this.heldFrom === -1) this.heldFrom = this.out.length
    this.out.add(bytes, edits ?? noEdits, atMs)
  }

  /** Writes what is not held. `wrote`: bytes left; `full`: the only reader is slower than the engine. */
  flush(): { readonly wrote: boolean; readonly full: boolean } {
    this.live = true
    const until = this.heldFrom === -1 ? this.out.length : this.heldFrom
    const from = this.writtenTo
    this.writtenTo = until
    let full = 0
    let followers = 0
    for (const client of this.clients) {
      if (client.gone || !this.follows(client)) continue
      followers += 1
      client.startStream()
      if (until > from && !client.write(this.out.memory, from, until)) full += 1
    }
    // Several readers share one answer: the slow one must not hold the other up.
    return { wrote: followers > 0 && until > from, full: full > 0 && followers === 1 }
  }

  /** The dialect's keep-alive to everyone who waits for a stream. Not part of the reply. */
  keepAlive(): void {
    for (const client of this.clients) if (client.view.streamed) client.write(this.form.keepAlive)
  }

  /** The reply as the first client gets it. */
  reply(failure: ToldFailure | null): Buffer {
    if (failure === null) return this.out.bytes()
    if (!this.started) return failure.wire.body
    const seen = this.out.bytes(0, this.heldFrom === -1 ? this.out.length : this.heldFrom)
    return Buffer.concat([seen, this.form.errorEvent(failure.error)])
  }

  /** Where the events of the reply begin, and when they came. */
  marks(): readonly ReplyMark[] {
    return this.out.marks()
  }

  /** Gives everyone the end: the held rest, the whole answer, or the error in the form that still fits. */
  deliverAll(answer: Answer, failure: ToldFailure | null): void {
    for (const client of this.clients) this.deliver(client, answer, failure)
  }

  /** The same for one client, also for one that comes when all is done. */
  deliver(client: Client, answer: Answer, failure: ToldFailure | null): void {
    if (client.gone) return
    if (failure !== null) {
      if (client.started) client.end(this.form.errorEvent(failure.error))
      else client.sendError(failure.wire)
      return
    }
    if (!client.view.streamed) {
      client.sendJson(200, this.view.streamed ? this.form.body(answer, client.view) : this.out.bytes())
      return
    }
    const follows = this.follows(client)
    const rest = follows
      ? this.out.bytes(client.started && this.live ? this.writtenTo : 0)
      : Buffer.concat(this.form.events(answer, client.view))
    client.startStream()
    client.end(rest)
  }

  /** The reply is stored: what stays is for clients that come later. */
  letGo(): void {
    this.out.letMarksGo()
  }

  /** The client wants exactly the stream that the call produces. */
  private follows(client: Client): boolean {
    return this.view.streamed && client.view.streamed && client.view.wantsUsage === this.view.wantsUsage
  }
}
