import { type Digest, type Id, isBeside, isPaddockError, newId, PaddockError } from '../core/index.ts'
import type { CallCommit, CallOutcome } from '../trajectory/index.ts'
import { noteAnswers } from './answered.ts'
import { Audience, type ToldFailure } from './audience.ts'
import { faultOf, isOwnRequest } from './blame.ts'
import type { AdmittedCall, CallSurroundings } from './call-contract.ts'
import { lostOutcome, outcomeOf } from './ended-call.ts'
import { CallTimes } from './call-times.ts'
import { CallUpstream } from './call-upstream.ts'
import { commitOf, emptyCommit, type EndedCall, storeBeside } from './commit.ts'
import { Answer } from './dialects/chat/answer.ts'
import type { AnswerView, ReplyForm, StreamPiece } from './dialects/contract.ts'
import { asFailure, EngineReply, type ReplyEnd } from './engine-reply.ts'
import type { Client, ClientWatch } from './http/client.ts'
import { type BothRenders, injectedEvent } from './injection/clean.ts'
import { IntentGate, type IntentWatch } from './intent-gate.ts'
import type { LooseObject } from './session/sampling.ts'
import type { AnswerSink } from './tokens/contract.ts'

/**
 * One generation, from intent to commit, with the clients that wait for it. The order is the promise (invariant I5):
 * the intent is durable before any byte leaves; from the first actionable event on nothing leaves until the answer is
 * committed. Clients come and go; what becomes of the engine's work when the last one left is the session's policy.
 */
export class RunningCall implements AnswerSink, ClientWatch, IntentWatch {
  readonly id: Id
  /** What clients that ask again need of it. */
  readonly admitted: Pick<AdmittedCall, 'form' | 'session'> & { readonly digest: Digest }
  phase: 'waiting' | 'running' | 'committing' | 'answered' | 'failed' = 'waiting'
  /** Some client got all of an answer or error. */
  sent = false
  repeated = false
  recorded = false
  private readonly around: CallSurroundings<RunningCall>
  /** Null once it has ended: an answer is kept for clients that ask again, what was asked is not. */
  private asked: AdmittedCall | null
  private readonly view: AnswerView
  private readonly form: ReplyForm
  private readonly answer: Answer
  private readonly audience: Audience
  private readonly upstream: CallUpstream
  private readonly reply: EngineReply
  private readonly intent = new IntentGate()
  private readonly times: CallTimes
  private failure: ToldFailure | null = null
  /** Of a prompt with texts put into it. */
  private renders: Promise<BothRenders> | null = null

  constructor(admitted: AdmittedCall, around: CallSurroundings<RunningCall>) {
    this.asked = admitted
    this.around = around
    this.id = admitted.intent.id
    this.upstream = new CallUpstream(around)
    const { request, form, session, intent } = admitted
    this.admitted = { form, session, digest: intent.requestDigest }
    this.form = form
    this.view = { streamed: request.streamed, wantsUsage: request.wantsUsage, wantsLogprobs: request.wantsLogprobs }
    this.audience = new Audience(this.view, form)
    this.answer = new Answer(request.wantsLogprobs || admitted.topLogprobs > 0)
    this.reply = new EngineReply(this.answer, form, this.view)
    this.times = new CallTimes(around.clock)
  }

  /** A client waits for the answer on an open connection. */
  get connected(): boolean {
    return this.audience.attended
  }

  /** Stores the intent and asks the engine, at the same time. */
  start(): void {
    const { asked } = this
    if (this.phase !== 'waiting' || asked === null) {
      this.upstream.release()
      return
    }
    this.phase = 'running'
    this.recorded = true
    this.times.heard()
    const { intent, path, body, session, match, tokens, injected } = asked
    const { strategy } = intent
    const ids = { callId: this.id, sessionId: session.record.id }
    this.renders = injected === null || injected.put === null ? null : injected.renders()
    this.upstream.asked(tokens.send({ ...ids, strategy, path, body, match }, this))
    // The engine reads the request while the intent is written.
    this.intent.write(this.around.recorder.beginCall(intent), this)
  }

  intentDurable(): void {
    if (this.asked !== null) letGoOfBodies(this.asked)
    this.flush()
  }

  /** Runs `then` once the intent is durable; a store that failed is told elsewhere. */
  afterIntent(then: () => Promise<void>): void {
    this.intent.after(then)
  }

  /** Records a call that is refused without asking the engine: the intent, then its outcome. */
  async refuse(error: PaddockError): Promise<void> {
    const { asked } = this
    if (asked === null) return
    const { body } = this.form.error(error)
    const outcome: CallOutcome = { kind: 'refused', code: error.code, message: error.message }
    this.recorded = true
    await this.around.recorder.beginCall(asked.intent)
    const refusal = { ...emptyCommit(this.id, this.around.clock.now()), outcome, status: error.status, reply: body }
    await this.around.recorder.commitCall(refusal)
  }

  /** Gives the answer to one more client: what there is now, the rest as it comes. */
  attach(client: Client): void {
    client.watch(this)
    this.audience.join(client)
    if (this.phase === 'answered' || this.phase === 'failed') this.audience.deliver(client, this.answer, this.failure)
  }

  /** Called about once a second: keep-alives and the stall watchdog. */
  tick(now: number): void {
    if (this.phase !== 'running') return
    if (!this.upstream.paused && this.times.silentMs(now) >= this.around.stallMs) {
      this.upstream.cut()
      const seconds = Math.round(this.around.stallMs / 1000)
      this.fail(new PaddockError('ENGINE_TIMEOUT', `The engine was silent for ${seconds} s.`))
      return
    }
    if (!this.view.streamed || !this.intent.open || this.times.untoldMs(now) < this.around.keepAliveMs) return
    this.times.keptAlive(now)
    this.audience.keepAlive()
  }

  /** Ends the call at once; what came is committed. */
  async abort(why: 'session' | 'shutdown'): Promise<void> {
    const error =
      why === 'session'
        ? new PaddockError('SESSION_CLOSED', 'The session was closed while the call was running.')
        : new PaddockError('PROXY_DRAINING', 'The proxy was closed while the call was running.')
    const failure = { error, wire: this.form.error(error) }
    const fault = why === 'shutdown' ? error.code : this.silence()
    if (this.phase === 'waiting') {
      await this.abandon(failure, fault)
      return
    }
    if (this.phase !== 'running') return
    this.upstream.cut()
    await this.finish(
      why === 'session' ? { kind: 'client_gone', upstream: 'aborted' } : { kind: 'interrupted' },
      failure,
      fault,
    )
  }

  /** Ends a call for which there is no place: nothing of it is recorded but that its harness was told so. */
  turnAway(error: PaddockError): Promise<void> {
    return this.abandon({ error, wire: this.form.error(error) }, error.code)
  }

  /** Ends a call that waits for admission: the engine was never asked, nothing is recorded but the `fault`. */
  private async abandon(failure: ToldFailure, fault: string | null): Promise<void> {
    this.phase = 'failed'
    this.failure = failure
    // Stored before the client can end the rollout.
    if (fault !== null) await this.around.taint(this, fault).catch(storeGone)
    this.audience.deliverAll(this.answer, this.failure)
    this.around.abandoned(this)
    this.letGo()
  }

  // -------------------------------------------------------------------------------------- what the engine says

  head(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void {
    this.times.heard()
    this.reply.head(status, headers)
    if (this.reply.streams) this.flush()
  }

  prompted(ids: Int32Array): void {
    this.answer.promptIds ??= ids
  }

  chunk(bytes: Buffer): void {
    this.times.heard()
    if (this.phase !== 'running' || bytes.length === 0) return
    try {
      this.add(this.reply.cut(bytes))
      this.flush()
      this.reply.read()
    } catch (cause) {
      this.upstream.cut()
      this.fail(asFailure(cause))
    }
  }

  end(): void {
    this.upstream.release()
    if (this.phase !== 'running') return
    let end: ReplyEnd
    try {
      end = this.reply.end()
    } catch (cause) {
      this.fail(asFailure(cause))
      return
    }
    if (end.kind === 'refused') {
      const { code, message, error, wire, blames } = end.refusal
      const fault = this.asked !== null && isOwnRequest(blames, this.asked) ? null : code
      void this.finish({ kind: 'engine_error', code, status: end.status, message }, { error, wire }, fault)
      return
    }
    this.add(end.pieces)
    void this.finish({ kind: 'complete' }, null, null)
  }

  failed(error: PaddockError, sampled?: LooseObject): void {
    this.upstream.release()
    if (this.phase !== 'running') return
    if (sampled !== undefined) this.answer.add(sampled)
    this.fail(asFailure(error))
  }

  // ------------------------------------------------------------------------------------------------ inner works

  private add(pieces: readonly StreamPiece[]): void {
    const { atMs } = this.times
    for (const piece of pieces) this.audience.add(piece, atMs)
  }

  private fail(error: PaddockError): void {
    const { status } = this.reply
    void this.finish(
      { kind: 'engine_error', code: error.code, status, message: error.message },
      { error, wire: this.form.error(error) },
      faultOf(error),
    )
  }

  /** Writes what may be seen to the clients that follow the stream. */
  private flush(): void {
    // An engine may be done before the intent is stored: its words still go out before the commit.
    const streaming = this.phase === 'running' || (this.phase === 'committing' && this.failure === null)
    if (!this.intent.open || !this.reply.streams || !streaming) return
    const { wrote, full } = this.audience.flush()
    if (wrote) this.times.told()
    if (full) this.upstream.pause()
  }

  clientDrained(): void {
    this.resume()
  }

  private resume(): void {
    if (this.upstream.resume()) this.times.heard()
  }

  /** Commits what came, then delivers it. Runs once. `fault`: why there is no answer, where the agent did not cause that. */
  private async finish(outcome: CallOutcome, failure: ToldFailure | null, fault: string | null): Promise<void> {
    const { asked } = this
    if (this.phase !== 'running' || asked === null) return
    this.phase = 'committing'
    this.failure = failure
    if (!this.intent.open && !(await this.intent.stored)) return
    const learning = this.learnWeights()
    if (learning !== null) await learning
    const attended = this.connected
    const complete = outcome.kind === 'complete'
    const tainted = attended || outcome.kind === 'client_gone' ? fault : null
    const told: CallOutcome = complete && !attended ? { kind: 'client_gone', upstream: 'finished' } : outcome
    let commit: CallCommit
    try {
      const { engine, clock } = this.around
      const ended: EndedCall = {
        call: asked,
        answer: this.answer,
        engine,
        endedAt: clock.now(),
        firstByteAt: this.times.firstByteAt,
        outcome: told,
        status: this.clientStatus(attended),
        reply: this.audience.reply(failure),
        replyMarks: this.audience.marks(),
      }
      const beside = storeBeside(ended, this.around)
      if (beside !== null) await beside
      if (this.renders !== null) await this.tellInjected(asked, await this.renders)
      commit = commitOf(ended)
      await this.store(commit, tainted)
    } catch (cause) {
      this.storeFailed(cause)
      return
    }
    this.phase = complete ? 'answered' : 'failed'
    if (complete && !isBeside(asked.callClass)) {
      noteAnswers(asked, this.answer)
      asked.session.tellAnswer(commit, asked.callClass)
    }
    this.audience.deliverAll(this.answer, this.failure)
    this.around.settled(this, outcomeOf(asked, this.answer, { commit, tainted }))
    this.letGo()
  }

  /** Before its commit: a call that is whole has this with it. */
  private async tellInjected({ session, injected, intent }: AdmittedCall, renders: BothRenders): Promise<void> {
    const put = injected?.put ?? null
    if (put === null) return
    const told = { prompt: this.answer.promptIds, renders, spliced: intent.strategy === 'splice' }
    const { id: sessionId, rolloutId } = session.record
    const about = { id: newId(), at: this.around.clock.now(), rolloutId, sessionId }
    await this.around.recorder.appendEvent({ ...about, ...injectedEvent(this.id, put, told) })
  }

  /** Stores the end of the call: the fault that the harness is about to see, then the transaction, so that no kill leaves it without. */
  private store(commit: CallCommit, tainted: string | null): Promise<unknown> {
    if (tainted === null) return this.around.recorder.commitCall(commit)
    return Promise.all([this.around.taint(this, tainted), this.around.recorder.commitCall(commit)])
  }

  /** Why a client that leaves now was made to: nothing has come of the call for long, from its engine or the queue before that. */
  private silence(): string | null {
    const { clock, stallTaintMs } = this.around
    return !this.upstream.paused && this.times.silentMs(clock.monotonic()) >= stallTaintMs ? 'ENGINE_TIMEOUT' : null
  }

  /** Keeps what a client that asks again is given, and nothing else: a session remembers calls for as long as it is open. */
  private letGo(): void {
    this.asked = null
    this.upstream.letGo()
    this.reply.letGo()
    this.audience.letGo()
    this.answer.letGo()
  }

  /** Which weights sampled the answer: as the reply says, else as the engine says now. */
  private learnWeights(): Promise<void> | null {
    if (this.answer.choices.length === 0) return null
    const seen = this.upstream.weights(this.answer.weightVersionLast)
    if (seen instanceof Promise) return seen.then((later) => this.answer.met(later))
    if (seen !== null) this.answer.met(seen)
    return null
  }

  private clientStatus(attended: boolean): number | null {
    if (this.audience.started) return 200
    if (!attended) return null
    return this.failure === null ? 200 : this.failure.wire.status
  }

  clientGone(): void {
    this.resume()
    if (this.connected) return
    const fault = this.silence()
    if (this.phase === 'waiting') {
      const error = new PaddockError('ENGINE_DIED', 'The client closed the connection before the call was admitted.')
      void this.abandon({ error, wire: this.form.error(error) }, fault)
      return
    }
    if (this.phase !== 'running') return
    if (this.admitted.session.record.policy.onDisconnect === 'finish') {
      if (fault !== null) this.around.taint(this, fault).catch(storeGone)
      return
    }
    this.upstream.cut()
    const error = new PaddockError('ENGINE_DIED', 'The client closed the connection and the engine call was aborted.')
    void this.finish({ kind: 'client_gone', upstream: 'aborted' }, { error, wire: this.form.error(error) }, fault)
  }

  clientSent(): void {
    if (this.sent) return
    this.sent = true
    if (this.phase !== 'answered') return
    this.admitted.session.conversation.noteSent(this.id)
    this.around.delivered(this)
  }

  /** Without a store nothing may leave: the client gets the error, the engine stops. */
  storeFailed(cause: unknown): void {
    if (this.phase === 'failed' || this.phase === 'answered') return
    this.phase = 'failed'
    this.upstream.cut()
    const error = isPaddockError(cause)
      ? cause
      : new PaddockError('STORE_CORRUPT', 'The call could not be stored.', { cause })
    this.failure = { error, wire: this.form.error(error) }
    const attended = this.connected
    if (attended) this.around.taint(this, error.code).catch(storeGone)
    this.audience.deliverAll(this.answer, this.failure)
    const { asked } = this
    if (asked === null) return
    this.around.settled(this, lostOutcome(asked, this.answer, { error, endedAt: this.around.clock.now(), attended }))
    this.letGo()
  }
}

const noBytes = Buffer.alloc(0)

/** Once the intent is stored and the engine asked, nobody needs the bytes of the request: an open stream outlives them by far. */
function letGoOfBodies(asked: AdmittedCall): void {
  // The recorder was given the intent: that one stays as it is.
  asked.intent = { ...asked.intent, body: noBytes }
  asked.body = noBytes
  asked.request.bytes = noBytes
  asked.request.turns.letGoOfText()
}

/** The session remembers the fault, and the next intent fails with the store. */
function storeGone(): void {}
