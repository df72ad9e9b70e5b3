import { type CallClass, type Clock, type Id, isPaddockError, PaddockError } from '../core/index.ts'
import type { CallCommit, CallFate, CallIntent, Recorder } from '../trajectory/index.ts'
import { Audience, type ToldFailure } from './audience.ts'
import { commitOf, emptyCommit } from './commit.ts'
import { Answer, messageOf } from './dialects/chat/answer.ts'
import type { ChatRequest } from './dialects/chat/request.ts'
import { turnDigest } from './dialects/chat/turns.ts'
import type { AnswerView, ReplyForm, ReplyReader, StreamPiece } from './dialects/contract.ts'
import type { EngineAdapter } from './engines/contract.ts'
import type { Client } from './http/client.ts'
import type { LiveSession } from './session/live-session.ts'
import type { ConversationMatch } from './session/conversation.ts'
import type { UpstreamRequest, UpstreamSink } from './upstream.ts'

/** What a running call needs of the proxy around it. */
export interface CallSurroundings {
  readonly recorder: Recorder
  readonly engine: EngineAdapter
  readonly clock: Clock
  readonly keepAliveMs: number
  readonly stallMs: number
  /** Called once when the engine has nothing more to do with the call. */
  readonly released: (call: RunningCall) => void
  /** Stores that the harness sees a fault which is not its own. */
  readonly taint: (call: RunningCall, cause: string) => Promise<void>
  /** Called once when a call ends before it was admitted. */
  readonly abandoned: (call: RunningCall) => void
  /** Called once when the call is committed (or could not be). */
  readonly settled: (call: RunningCall, outcome: CallOutcome) => void
}

/** How a call came out, for events and statistics. */
export interface CallOutcome {
  readonly commit: CallCommit
  readonly promptTokens: number | null
  readonly sampledTokens: number | null
  readonly tainted: string | null
}

/** A call that was admitted: the intent and what is sent to the engine. */
export interface AdmittedCall {
  readonly session: LiveSession
  readonly intent: CallIntent
  /** Canonical, whatever the harness speaks. */
  readonly request: ChatRequest
  /** How the answer is written for the harness. */
  readonly form: ReplyForm
  readonly match: ConversationMatch
  readonly path: string
  readonly body: Buffer
  /** The engine is asked without `stream` and the stream is synthesised. */
  readonly buffered: boolean
  readonly callClass: CallClass
}

/**
 * One generation, from intent to commit, with the clients that wait for it. The order is the promise (invariant I5):
 * the intent is durable before any byte leaves; from the first actionable event on nothing leaves until the answer is
 * committed. Clients come and go; what becomes of the engine's work when the last one left is the session's policy.
 */
export class RunningCall implements UpstreamSink {
  readonly id: Id
  readonly admitted: AdmittedCall
  phase: 'waiting' | 'running' | 'committing' | 'answered' | 'failed' = 'waiting'
  /** Some client got all of an answer or error. */
  sent = false
  repeated = false
  private readonly around: CallSurroundings
  private readonly view: AnswerView
  private readonly form: ReplyForm
  private readonly answer: Answer
  private readonly audience: Audience
  private readonly startedAt: number
  private upstream: UpstreamRequest | null = null
  private upstreamDone = false
  private status: number | null = null
  private stream: ReplyReader | null = null
  private retryAfter: string | null = null
  /** Whole bodies and error bodies. */
  private readonly received: Buffer[] = []
  private intentStored: Promise<void> | null = null
  private intentDurable = false
  private readonly onIntent: (() => Promise<void>)[] = []
  private firstByteAt: number | null = null
  private lastHeardAt: number
  private lastToldAt: number
  private paused = false
  private failure: ToldFailure | null = null

  constructor(admitted: AdmittedCall, around: CallSurroundings) {
    this.admitted = admitted
    this.around = around
    this.id = admitted.intent.id
    const { request, form } = admitted
    this.form = form
    this.view = { streamed: request.streamed, wantsUsage: request.wantsUsage, wantsLogprobs: request.wantsLogprobs }
    this.audience = new Audience(this.view, form)
    this.answer = new Answer(request.wantsLogprobs)
    this.startedAt = around.clock.monotonic()
    this.lastHeardAt = this.startedAt
    this.lastToldAt = this.startedAt
  }

  /** A client waits for the answer on an open connection. */
  get connected(): boolean {
    return this.audience.attended
  }

  /** Stores the intent and asks the engine, at the same time. */
  start(): void {
    if (this.phase !== 'waiting') {
      this.releaseUpstream()
      return
    }
    this.phase = 'running'
    this.lastHeardAt = this.around.clock.monotonic()
    const { intent, path, body, session, match } = this.admitted
    this.intentStored = this.around.recorder.beginCall(intent)
    this.intentStored.then(
      () => {
        this.intentDurable = true
        this.flush()
        for (const then of this.onIntent) then().catch(() => {})
      },
      (cause: unknown) => this.storeFailed(cause),
    )
    const { strategy } = intent
    const ids = { callId: this.id, sessionId: session.record.id }
    this.upstream = session.tokens.send({ ...ids, strategy, path, body, match }, this)
  }

  /** Runs `then` once the intent is durable; a store that failed is told elsewhere. */
  afterIntent(then: () => Promise<void>): void {
    this.onIntent.push(then)
  }

  /** The commit of a call that is refused without asking the engine. */
  refusal(error: PaddockError): CallCommit {
    const { body } = this.form.error(error)
    const fate: CallFate = { kind: 'refused', code: error.code, message: error.message }
    return { ...emptyCommit(this.id, this.around.clock.now()), fate, status: error.status, reply: body }
  }

  /** Gives the answer to one more client: what there is now, the rest as it comes. */
  attach(client: Client): void {
    client.watch({
      gone: () => this.clientGone(),
      sent: () => this.clientSent(),
      drain: () => this.resume(),
    })
    this.audience.join(client)
    if (this.phase === 'answered' || this.phase === 'failed') this.audience.deliver(client, this.answer, this.failure)
  }

  /** Called about once a second: keep-alives and the stall watchdog. */
  tick(now: number): void {
    if (this.phase !== 'running') return
    if (!this.paused && now - this.lastHeardAt >= this.around.stallMs) {
      this.cutUpstream()
      const seconds = Math.round(this.around.stallMs / 1000)
      this.fail(new PaddockError('ENGINE_TIMEOUT', `The engine was silent for ${seconds} s.`))
      return
    }
    if (!this.view.streamed || !this.intentDurable || now - this.lastToldAt < this.around.keepAliveMs) return
    this.lastToldAt = now
    this.audience.keepAlive()
  }

  /** Ends the call at once; what came is committed. */
  async abort(why: 'session' | 'shutdown'): Promise<void> {
    const error =
      why === 'session'
        ? new PaddockError('SESSION_CLOSED', 'The session was closed while the call was running.')
        : new PaddockError('PROXY_DRAINING', 'The proxy was closed while the call was running.')
    const failure = { error, wire: this.form.error(error) }
    if (this.phase === 'waiting') {
      this.abandon(failure)
      return
    }
    if (this.phase !== 'running') return
    this.cutUpstream()
    await this.finish(
      why === 'session' ? { kind: 'client_gone', upstream: 'aborted' } : { kind: 'interrupted' },
      failure,
    )
  }

  /** Ends a call that waits for admission: the engine was never asked, nothing is recorded. */
  private abandon(failure: ToldFailure): void {
    this.phase = 'failed'
    this.failure = failure
    this.audience.deliverAll(this.answer, this.failure)
    this.around.abandoned(this)
  }

  // -------------------------------------------------------------------------------------- what the engine says

  head(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void {
    this.heard()
    this.status = status
    const retryAfter = headers['retry-after']
    this.retryAfter = typeof retryAfter === 'string' ? retryAfter : null
    const type = headers['content-type']
    if (status >= 400 || typeof type !== 'string' || !type.startsWith('text/event-stream')) return
    this.stream = this.form.reader(this.answer)
    this.flush()
  }

  chunk(bytes: Buffer): void {
    this.heard()
    if (this.phase !== 'running') return
    if (this.stream === null) {
      this.received.push(bytes)
      return
    }
    try {
      this.add(this.stream.cut(bytes))
      this.flush()
      this.stream.read()
    } catch (cause) {
      this.cutUpstream()
      this.fail(asFailure(cause))
    }
  }

  end(): void {
    this.releaseUpstream()
    if (this.phase !== 'running') return
    const status = this.status ?? 502
    if (status >= 400) {
      const refusal = this.form.refusal(status, Buffer.concat(this.received), this.retryAfter)
      const fate: CallFate = { kind: 'engine_error', code: refusal.code, status, message: refusal.message }
      void this.finish(fate, { error: refusal.error, wire: refusal.wire })
      return
    }
    if (this.answer.error !== null) {
      const said = this.answer.error['message']
      this.fail(new PaddockError('ENGINE_ERROR', typeof said === 'string' ? said : 'The engine failed mid-stream.'))
      return
    }
    try {
      if (this.stream === null) this.takeWholeBody()
      else if (!this.stream.sawDone && !this.answer.ended) {
        this.fail(new PaddockError('ENGINE_DIED', 'The engine ended the stream before the answer was complete.'))
        return
      } else this.add(this.stream.close())
    } catch (cause) {
      this.fail(asFailure(cause))
      return
    }
    void this.finish({ kind: 'complete' }, null)
  }

  failed(error: PaddockError): void {
    this.releaseUpstream()
    if (this.phase === 'running') this.fail(error)
  }

  // ------------------------------------------------------------------------------------------------ inner works

  /** A whole JSON answer: held as it is, or made into events where the client asked for a stream. */
  private takeWholeBody(): void {
    const visible = this.form.whole(Buffer.concat(this.received), this.answer)
    const pieces = this.view.streamed ? this.form.events(this.answer, this.view) : [visible]
    this.add(pieces.map((bytes) => ({ bytes, actionable: true })))
  }

  private add(pieces: readonly StreamPiece[]): void {
    const atMs = Math.round(this.lastHeardAt - this.startedAt)
    for (const piece of pieces) this.audience.add(piece.bytes, piece.actionable, atMs)
  }

  private fail(error: PaddockError): void {
    const status = this.status
    void this.finish(
      { kind: 'engine_error', code: error.code, status, message: error.message },
      { error, wire: this.form.error(error) },
    )
  }

  /** Writes what may be seen to the clients that follow the stream. */
  private flush(): void {
    // An engine may be done before the intent is stored: its words still go out before the commit.
    const streaming = this.phase === 'running' || (this.phase === 'committing' && this.failure === null)
    if (!this.intentDurable || this.stream === null || !streaming) return
    const { wrote, full } = this.audience.flush()
    if (wrote) {
      this.firstByteAt ??= this.around.clock.now()
      this.lastToldAt = this.lastHeardAt
    }
    if (full && !this.paused) {
      this.paused = true
      this.upstream?.pause()
    }
  }

  private resume(): void {
    if (!this.paused) return
    this.paused = false
    this.lastHeardAt = this.around.clock.monotonic()
    this.upstream?.resume()
  }

  /** Commits what came, then delivers it. Runs once. */
  private async finish(fate: CallFate, failure: ToldFailure | null): Promise<void> {
    if (this.phase !== 'running') return
    this.phase = 'committing'
    this.failure = failure
    try {
      await this.intentStored
    } catch {
      return
    }
    const attended = this.connected
    const complete = fate.kind === 'complete'
    const taint = attended && failure !== null && taints(failure) ? failure.error.code : null
    const told: CallFate = complete && !attended ? { kind: 'client_gone', upstream: 'finished' } : fate
    const reply = this.audience.reply(failure)
    let commit: CallCommit
    try {
      commit = commitOf({
        call: this.admitted,
        answer: this.answer,
        engine: this.around.engine,
        endedAt: this.around.clock.now(),
        firstByteAt: this.firstByteAt,
        fate: told,
        status: this.clientStatus(attended),
        reply,
        replyMarks: this.audience.marks,
      })
      // The taint is as durable as the call before the harness can see the fault.
      const tainted = taint === null ? null : this.around.taint(this, taint)
      await Promise.all([this.around.recorder.commitCall(commit), tainted])
    } catch (cause) {
      this.storeFailed(cause)
      return
    }
    this.phase = complete ? 'answered' : 'failed'
    if (complete) this.noteAnswers()
    this.audience.deliverAll(this.answer, this.failure)
    this.around.settled(this, { commit, ...this.counts(), tainted: taint })
  }

  /** Where the answers stand in the conversation, for the requests that continue them. */
  private noteAnswers(): void {
    const { session, request } = this.admitted
    const before = request.chain.at(-1) ?? ''
    for (const choice of this.answer.choices) {
      if (choice.reasoning !== null) session.reasoningName = choice.reasoningName
      session.conversation.note(
        { callId: this.id, choice: choice.index },
        before,
        turnDigest(choice.rawMessage === null ? messageOf(choice) : JSON.parse(choice.rawMessage)),
        choice.toolCalls.flatMap((call) => call?.id ?? []),
      )
    }
  }

  private counts(): { promptTokens: number | null; sampledTokens: number | null } {
    const sampled = this.answer.choices.reduce((sum, choice) => sum + choice.tokenIds.length, 0)
    return {
      promptTokens: this.answer.promptIds?.length ?? this.answer.claimed('prompt_tokens'),
      sampledTokens: sampled > 0 ? sampled : this.answer.claimed('completion_tokens'),
    }
  }

  private clientStatus(attended: boolean): number | null {
    if (this.audience.started) return 200
    if (!attended) return null
    return this.failure === null ? 200 : this.failure.wire.status
  }

  private clientGone(): void {
    this.resume()
    if (this.connected) return
    if (this.phase === 'waiting') {
      const error = new PaddockError('ENGINE_DIED', 'The client closed the connection before the call was admitted.')
      this.abandon({ error, wire: this.form.error(error) })
      return
    }
    if (this.phase !== 'running') return
    if (this.admitted.session.record.policy.onDisconnect === 'finish') return
    this.cutUpstream()
    const error = new PaddockError('ENGINE_DIED', 'The client closed the connection and the engine call was aborted.')
    void this.finish({ kind: 'client_gone', upstream: 'aborted' }, { error, wire: this.form.error(error) })
  }

  private clientSent(): void {
    if (this.sent) return
    this.sent = true
    if (this.phase !== 'answered') return
    this.admitted.session.conversation.noteSent(this.id)
    this.around.recorder.settleDelivery(this.id, 'sent').catch(() => {
      // A store that fails here fails the next intent too, and that one is told.
    })
  }

  /** Without a store nothing may leave: the client gets the error, the engine stops. */
  private storeFailed(cause: unknown): void {
    if (this.phase === 'failed' || this.phase === 'answered') return
    this.phase = 'failed'
    this.cutUpstream()
    const error = isPaddockError(cause)
      ? cause
      : new PaddockError('STORE_CORRUPT', 'The call could not be stored.', { cause })
    this.failure = { error, wire: this.form.error(error) }
    const attended = this.connected
    if (attended) {
      this.around.taint(this, error.code).catch(() => {
        // The store is gone; the listener was told.
      })
    }
    this.audience.deliverAll(this.answer, this.failure)
    this.around.settled(this, {
      commit: {
        ...emptyCommit(this.id, this.around.clock.now()),
        fate: { kind: 'engine_error', code: error.code, status: null, message: error.message },
        status: error.status,
      },
      promptTokens: null,
      sampledTokens: null,
      tainted: attended ? error.code : null,
    })
  }

  private heard(): void {
    this.lastHeardAt = this.around.clock.monotonic()
  }

  private cutUpstream(): void {
    this.upstream?.abort()
    this.releaseUpstream()
  }

  private releaseUpstream(): void {
    if (this.upstreamDone) return
    this.upstreamDone = true
    this.around.released(this)
  }
}

/** A fault that the harness must not be scored for: ours or the engine's, told by a 5xx or a broken stream. */
function taints(failure: ToldFailure): boolean {
  return failure.wire.status >= 500
}

function asFailure(cause: unknown): PaddockError {
  return isPaddockError(cause) ? cause : new PaddockError('ENGINE_ERROR', 'The answer could not be read.', { cause })
}
