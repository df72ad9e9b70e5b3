import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type CallClass,
  InFlightSet,
  type Digest,
  type Id,
  isBeside,
  isPaddockError,
  newId,
  PaddockError,
  sha256,
} from '../core/index.ts'
import { type CallIntent, type WireFault, wireFaultOf } from '../trajectory/index.ts'
import { isAnswered } from './is-answered.ts'
import type { EndedCall, CallSurroundings } from './call-contract.ts'
import { traceCall } from './call-span.ts'
import type { ProxyEvent, ProxyLimits } from './contract.ts'
import type { ChatRequest } from './dialects/chat/request.ts'
import type { Dialect, DialectRequest } from './dialects/contract.ts'
import { dialectNamed } from './dialects/registry.ts'
import { engineBody } from './engine-body.ts'
import type { EngineRequestPlan } from './engines/contract.ts'
import { shownUrl } from './engines/http.ts'
import { untoldDefaults, withDefaults } from './engines/facts.ts'
import type { KnownEngine } from './engines/known-engine.ts'
import { readBody } from './http/body.ts'
import { Client } from './http/client.ts'
import type { Graft, GraftedRequest } from './past/graft.ts'
import { replayCall } from './past/replayed-call.ts'
import { divergenceLine, type Recorded, type Replay } from './past/replay.ts'
import { renderBoth } from './injection/clean.ts'
import { RunningCall } from './running-call.ts'
import type { Admission } from './session/admission.ts'
import { isCredential } from './session/keys.ts'
import type { InjectedCall } from './injection/injector.ts'
import type { ConversationMatch } from './session/conversation.ts'
import type { BudgetName, LiveSession } from './session/live-session.ts'
import type { RememberedCall } from './session/remembered-call.ts'
import { judgeRetry } from './session/retries.ts'
import { applySampling, noChange } from './session/sampling.ts'
import type { CallTokenDriver } from './tokens/beside.ts'

/** What the generation routes need of the proxy around them. */
export interface GenerationSurroundings extends Omit<
  CallSurroundings<RunningCall>,
  'released' | 'abandoned' | 'delivered' | 'settled' | 'taint'
> {
  readonly admission: Admission
  readonly limits: ProxyLimits
  readonly emit: (event: ProxyEvent) => void
  readonly draining: () => boolean
  /** The engine of a session's next call as it is known; null: nobody wants to know. */
  readonly known: (sessionId: Id) => KnownEngine | null
  /** For calls beside the conversation. */
  readonly besideTokens: CallTokenDriver
}

/** A generation route of a dialect. */
export interface GenerationRoute {
  readonly dialect: Dialect
  readonly path: string
}

/** A request as its dialect reads it, and what it repeats. */
interface AskedGeneration {
  readonly read: DialectRequest
  readonly dialect: Dialect
  readonly digest: Digest
  readonly retryOf: Id | null
  readonly headers: IncomingMessage['headers']
  /** What its harness sent, where something else is read; null: nothing else is. */
  readonly received: Buffer | null
}

/** Running totals, for statistics. */
export interface GenerationTotals {
  calls: number
  sampledTokens: number
  promptTokens: number
}

/** The generation routes of all dialects: body, retry rule, budget, admission, then a {@link RunningCall}. */
export class Generations {
  readonly totals: GenerationTotals = { calls: 0, sampledTokens: 0, promptTokens: 0 }
  readonly running = new InFlightSet<RunningCall>()
  private readonly around: GenerationSurroundings
  /** One for all calls: what is told of a call names it. */
  private readonly aroundCalls: CallSurroundings<RunningCall>
  private readonly commits = new Set<() => void>()

  constructor(around: GenerationSurroundings) {
    this.around = around
    this.aroundCalls = {
      ...around,
      taint: (call, cause) => this.taint(call, cause),
      released: () => around.admission.leave(),
      abandoned: (call) => this.forget(call),
      delivered: (call) => this.settleDelivery(call.admitted.session, call.id, 'sent'),
      settled: (call, ended) => this.settled(call, ended),
    }
  }

  /** Serves one generation request of a session. Rejects with a `PaddockError` that is still to be told. */
  async serve(
    session: LiveSession,
    route: GenerationRoute,
    http: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    if (this.around.draining()) throw new PaddockError('PROXY_DRAINING', 'The proxy takes no new calls.')
    const bytes = await readBody(http, this.around.limits.maxBodyBytes)
    const known = this.around.known(session.record.id)
    // What a call is recorded as sampled by, and how it is asked, must be true when it is asked.
    if (known?.doubtful === true) await known.learnSoon()
    const { asked, received, isLost } = this.grafted(session, route, { bytes, headers: http.headers })
    const request = asked.chat
    const digest = callDigest(route.dialect, request)
    if (session.hold !== null) {
      const callClass =
        route.dialect.beside ?? session.classify(session.knownLineage(request.lineage), request.asked.maxTokens)
      await session.hold({ digest, callClass, body: received ?? asked.body })
    }
    if (!session.open) throw new PaddockError('SESSION_CLOSED', `The session ${session.record.id} is closed.`)
    const view = { streamed: request.streamed, wantsUsage: request.wantsUsage, wantsLogprobs: request.wantsLogprobs }
    const judgement = judgeRetry(session.earlier(digest, view), {
      digest,
      retryCount: request.lineage.retryCount,
      idempotencyKey: request.lineage.idempotencyKey,
    })
    const same = judgement.kind === 'same' ? session.remember(judgement.callId) : null
    if (same !== null) {
      same.attach(new Client(response, view, idHeader(same)))
      return
    }
    const generation: AskedGeneration = {
      read: asked,
      dialect: route.dialect,
      digest,
      retryOf: judgement.kind === 'again' ? judgement.callId : null,
      headers: http.headers,
      received,
    }
    if (isLost) await this.lostGraft(session, generation)
    if (session.replay !== null && (await this.replayed(session, session.replay, generation, response))) return
    const call = this.admit(session, generation)
    if (received !== null && session.graft !== null) this.tellGraft(session, session.graft, call, received)
    const used = session.exhausted()
    if (used !== null) await this.refuseOverBudget(session, call, used)
    if (session.trust.refusedFor !== null) await this.refuseUntrusted(session, call, session.trust.refusedFor)
    const client = new Client(response, view, idHeader(call))
    session.began(call, digest, request.lineage.idempotencyKey)
    this.running.add(call)
    call.attach(client)
    if (judgement.kind === 'again') this.supersede(session, judgement.callId, call)
    try {
      this.around.admission.enter(() => call.start())
    } catch (cause) {
      this.forget(call)
      throw cause
    }
  }

  /** Resolves when no call is running. */
  async idle(): Promise<void> {
    while (this.running.size > 0) await new Promise<void>((resolve) => this.commits.add(resolve))
  }

  /** An answer of an earlier process has left for a client. */
  deliveredPast(session: LiveSession, callId: Id): void {
    session.conversation.noteSent(callId)
    this.settleDelivery(session, callId, 'sent')
  }

  /** True where the past of another session answers. Throws `REPLAY_DIVERGED` where that is refused. */
  private async replayed(
    session: LiveSession,
    replay: Replay,
    asked: AskedGeneration,
    response: ServerResponse,
  ): Promise<boolean> {
    const { read, dialect, digest } = asked
    const { chat } = read
    const { id: sessionId, rolloutId } = session.record
    const lineage = session.knownLineage(chat.lineage)
    const callClass = dialect.beside ?? session.classify(lineage, chat.asked.maxTokens)
    const step = replay.step({ dialect: dialect.name, path: read.path, digest, callClass, body: read.body })
    if (step.kind === 'aside') return false
    if (step.kind === 'recorded') {
      const { answer, commit } = await this.answerAgain(session, replay, asked, {
        recorded: step.call,
        lineage,
        callClass,
      })
      session.tellAnswer(commit, callClass)
      const { streamed, wantsUsage, wantsLogprobs } = chat
      answer.attach(new Client(response, { streamed, wantsUsage, wantsLogprobs }, idHeader(answer)))
      return true
    }
    const refuses = step.kind === 'diverged' && replay.onDivergence === 'refuse'
    if (!refuses) session.replay = null
    const about = { id: newId(), at: this.around.clock.now(), rolloutId, sessionId }
    const told =
      step.kind === 'arrived'
        ? { phase: 'arrived' as const, of: session.record.forkedFrom?.callId ?? null, detail: '' }
        : { phase: 'diverged' as const, of: step.why.expected, detail: divergenceLine(step.why) }
    await this.around.recorder.appendEvent({ ...about, kind: 'replay', callId: null, ...told })
    if (refuses) await this.refuseDiverged(session, this.admit(session, asked), told.detail)
    return false
  }

  /**
   * Writes down all that stood before the call to fork at, for a harness that does not ask for it. Rejects with `STORE_*`, and with
   * `BODY_*` where a recorded request cannot be read any more.
   */
  async givePast(session: LiveSession): Promise<void> {
    const { replay } = session
    if (replay === null) return
    for (const recorded of replay.takeAll()) {
      const { dialect: name, body, headers, path, startedAt, lineage, callClass } = recorded.intent
      const dialect = dialectNamed(name)
      const read = dialect.read({ bytes: Buffer.from(body), headers, path, now: startedAt, memory: session })
      const asked = { read, dialect, digest: callDigest(dialect, read.chat), retryOf: null, headers, received: null }
      session.rememberClass({ lineage, callClass })
      const { answer } = await this.answerAgain(session, replay, asked, { recorded, lineage, callClass })
      // It reached the harness in the parent's session.
      answer.clientSent()
    }
  }

  private answerAgain(
    session: LiveSession,
    replay: Replay,
    asked: AskedGeneration,
    { recorded, ...about }: { readonly recorded: Recorded } & Pick<CallIntent, 'lineage' | 'callClass'>,
  ): ReturnType<typeof replayCall> {
    const { strategy, used, fingerprint } = recorded.intent
    const intent = this.intentOf(session, asked, { ...about, id: newId(), strategy, used, fingerprint })
    const { recorder, clock } = this.around
    const delivered = (callId: Id): void => this.deliveredPast(session, callId)
    return replayCall(session, { replay, intent, recorded, asked: asked.read }, { recorder, clock, delivered })
  }

  /** A request as it is read: of a harness that resumed another session, with the recorded past in the place of what it says. */
  private grafted(
    session: LiveSession,
    { dialect, path }: GenerationRoute,
    { bytes, headers }: { readonly bytes: Buffer; readonly headers: IncomingMessage['headers'] },
  ): GraftedRequest {
    const { memory, now } = { memory: session, now: this.around.clock.now() }
    const read = (body: Buffer) => dialect.read({ bytes: body, headers, path, now, memory })
    if (session.graft === null) return { asked: read(bytes), received: null, isLost: false }
    const isMain = (asked: DialectRequest) => dialect.beside === undefined && this.classOf(session, asked) === 'main'
    return session.graft.read(bytes, { read, isMain })
  }

  private classOf(session: LiveSession, { chat }: DialectRequest): CallClass {
    return session.classify(session.knownLineage(chat.lineage), chat.asked.maxTokens)
  }

  /** A call of the conversation in which the marker is gone does not say where its past ends. Throws `GRAFT_LOST` where that is refused. */
  private async lostGraft(session: LiveSession, asked: AskedGeneration): Promise<void> {
    const refuses = session.onDivergence === 'refuse'
    const detail = `the place at which its session was resumed is in none of its ${asked.dialect.name} messages any more`
    const about = { id: newId(), at: this.around.clock.now(), rolloutId: session.record.rolloutId }
    const of = session.record.forkedFrom?.callId ?? null
    const told = { kind: 'replay' as const, phase: 'graft_lost' as const, callId: null, of, detail }
    await this.around.recorder.appendEvent({ ...about, sessionId: session.record.id, ...told })
    if (refuses) {
      const error = new PaddockError('GRAFT_LOST', `The harness's request cannot be told from its past: ${detail}.`)
      session.lastError = error.code
      const call = this.admit(session, asked)
      await call.refuse(error)
      await this.taint(call, error.code)
      throw error
    }
    session.graft = null
    session.replay = null
  }

  /** Both bodies are kept: the call has what was read of it, a blob what its harness sent. */
  private tellGraft(session: LiveSession, graft: Graft, call: RunningCall, received: Buffer): void {
    const { id: sessionId, rolloutId } = session.record
    call.afterIntent(async () => {
      const about = { id: newId(), at: this.around.clock.now(), rolloutId, sessionId }
      const sha256 = await graft.keep(received)
      await this.around.recorder.appendEvent({ ...about, kind: 'grafted', callId: call.id, sha256 })
    })
  }

  private intentOf(
    session: LiveSession,
    { read, dialect, digest, retryOf, headers }: AskedGeneration,
    own: Pick<CallIntent, 'id' | 'lineage' | 'callClass' | 'strategy' | 'used' | 'fingerprint'>,
  ): CallIntent {
    const { chat: request } = read
    return {
      ...own,
      sessionId: session.record.id,
      seq: session.takeSeq(),
      startedAt: this.around.clock.now(),
      dialect: dialect.name,
      path: read.path,
      streamed: request.streamed,
      requestDigest: digest,
      retryOf,
      asked: request.asked,
      headers: keptHeaders(headers),
      body: read.body,
    }
  }

  private admit(session: LiveSession, asked: AskedGeneration): RunningCall {
    const { read, dialect } = asked
    const { chat: request } = read
    const { engine } = this.around
    const { policy } = session.record
    const facts = this.around.known(session.record.id)?.facts ?? null
    // A harness that writes an engine's own member means it; what another API calls a budget is a policy's business.
    const boundThinking =
      dialect.name === 'chat' ? 'as_written' : policy.thinkingBudget === 'pass' ? (engine.boundThinking ?? null) : null
    const sampling = applySampling(policy, request.asked, request.body, { boundThinking })
    const isBeside = dialect.beside !== undefined
    const topLogprobs = request.wantsLogprobs || isBeside ? request.topLogprobs : (policy.topLogprobs ?? null)
    const plan: EngineRequestPlan = isBeside
      ? { path: read.path, set: {}, remove: [], transport: 'as_asked' }
      : engine.planChat({
          streamed: request.streamed,
          hasTools: request.hasTools,
          askedLogprobs: request.wantsLogprobs,
          topLogprobs,
          wholeOnly: session.trust.wholeOnly,
        })
    const tokens = isBeside ? this.around.besideTokens : session.tokens
    const lineage = session.knownLineage(request.lineage)
    const callClass = dialect.beside ?? session.classify(lineage, request.asked.maxTokens)
    const buffered = plan.transport === 'buffer'
    const id = newId()
    const intent = this.intentOf(session, asked, {
      id,
      lineage,
      callClass,
      strategy: tokens.strategyFor(request.messages),
      used: withDefaults(sampling.used, facts?.defaults ?? untoldDefaults),
      fingerprint: facts?.digest ?? null,
    })
    const match = session.conversation.match(request.turns, read.handles)
    for (const callId of match.echoed) this.settleDelivery(session, callId, 'echoed')
    const set = setBy(plan.set, sampling.set, policy.model)
    const remove = sampling.remove.length === 0 ? plan.remove : [...plan.remove, ...sampling.remove]
    const clean = engineBody(request, { set, remove, buffered })
    const injected = session.injector?.into(request, { callClass, match }) ?? null
    const put = injected?.put ?? null
    const body = put === null ? clean : engineBody(request, { set: { ...set, messages: put.text }, remove, buffered })
    return new RunningCall(
      {
        session,
        tokens,
        intent,
        request,
        form: read.reply(id),
        match: injected === null ? match : matchOf(match, injected),
        injected: injected === null ? null : { ...injected, renders: () => renderBoth(engine, { full: body, clean }) },
        facts,
        path: plan.path,
        body,
        buffered,
        callClass,
        topLogprobs: topLogprobs ?? 0,
      },
      this.aroundCalls,
    )
  }

  private forget(call: RunningCall): void {
    this.running.delete(call)
    call.admitted.session.ended(call, 0)
    if (this.commits.size === 0) return
    const waiting = [...this.commits]
    this.commits.clear()
    for (const resolve of waiting) resolve()
  }

  private supersede(session: LiveSession, replaced: string, by: RunningCall): void {
    const earlier = session.remember(replaced)
    if (earlier === null) return
    earlier.repeated = true
    by.afterIntent(() => this.around.recorder.supersede(replaced, by.id))
  }

  /** A refused call is recorded as such: the intent, then its outcome. Throws `BUDGET_EXHAUSTED`. */
  private async refuseOverBudget(session: LiveSession, call: RunningCall, which: BudgetName): Promise<never> {
    const limit = session.record.policy.budget[which]
    const error = new PaddockError('BUDGET_EXHAUSTED', `The session has used up its ${which} of ${limit}.`, {
      data: { which, limit },
    })
    session.lastError = error.code
    this.around.emit({ type: 'budget', rolloutId: session.record.rolloutId, sessionId: session.record.id, which })
    await call.refuse(error)
    throw error
  }

  /** The harness sees a fault of the engine: that is recorded, and taints. Throws `ENGINE_UNTRUSTED`. */
  private async refuseUntrusted(session: LiveSession, call: RunningCall, fault: WireFault): Promise<never> {
    const { name, url } = this.around.engine
    const problem = `The engine ${name} at ${shownUrl(url)} keeps telling what cannot be true: \`${fault}\`.`
    const error = new PaddockError('ENGINE_UNTRUSTED', problem, { data: { fault } })
    session.lastError = error.code
    await call.refuse(error)
    await this.taint(call, error.code)
    throw error
  }

  /** The harness is told that it went its own way: recorded, and no work of the agent. Throws `REPLAY_DIVERGED`. */
  private async refuseDiverged(session: LiveSession, call: RunningCall, why: string): Promise<never> {
    const error = new PaddockError('REPLAY_DIVERGED', `The harness asked something else than in the past: ${why}.`)
    session.lastError = error.code
    await call.refuse(error)
    await this.taint(call, error.code)
    throw error
  }

  /** Learns from an answer how far the engine's next ones are believed. */
  private judge(call: RunningCall, { commit, streamed }: EndedCall): void {
    const { session } = call.admitted
    if (!commit.segments.some(({ origin }) => origin === 'sampled')) return
    if (!session.trust.note(commit.findings, streamed)) return
    const replica = shownUrl(this.around.engine.url)
    const fault = wireFaultOf(commit.findings) ?? ''
    const what = session.trust.refusedFor === null ? 'whole answers are asked for' : 'its calls are refused'
    const detail = `session ${session.record.id}: ${fault}; ${what} from now on`
    this.around.emit({ type: 'engine', what: 'distrusted', replica, detail })
  }

  private settled(call: RunningCall, ended: EndedCall): void {
    const { emit } = this.around
    const { session } = call.admitted
    this.judge(call, ended)
    session.ended(call, ended.sampledTokens ?? 0)
    this.forget(call)
    const { outcome } = ended.commit
    if (isAnswered(outcome) && !isBeside(ended.line.callClass)) session.noteAnswered()
    session.lastError = outcome.kind === 'engine_error' || outcome.kind === 'refused' ? outcome.code : null
    this.totals.calls += 1
    this.totals.sampledTokens += ended.sampledTokens ?? 0
    this.totals.promptTokens += ended.promptTokens ?? 0
    emit(ended.line)
    traceCall(ended.line, this.around.engine.name, ended.commit.endedAt)
  }

  private settleDelivery(session: LiveSession, callId: Id, delivery: 'sent' | 'echoed'): void {
    const { id: sessionId, rolloutId } = session.record
    this.around.emit({ type: 'delivery', rolloutId, sessionId, callId, delivery })
    this.around.recorder.settleDelivery(callId, delivery).catch(() => {
      // A store that fails here fails the next intent too, and that one is told.
    })
  }

  /** The harness sees a fault that is not its own: kept in the log beside the call. */
  private taint(call: RunningCall, cause: string): Promise<void> {
    const { session } = call.admitted
    const { id: sessionId, rolloutId } = session.record
    session.taints.push(cause)
    this.around.emit({ type: 'taint', rolloutId, sessionId, callId: call.id, cause })
    return this.around.recorder.appendEvent({
      id: newId(),
      at: this.around.clock.now(),
      rolloutId,
      sessionId,
      kind: 'taint',
      cause,
      callId: call.id,
    })
  }
}

/** What an engine, a policy's sampling and its model set, the later winning; the engine's own where the others set nothing. */
function setBy(
  plan: Readonly<Record<string, string>>,
  sampling: Readonly<Record<string, string>>,
  model: string | null,
): Readonly<Record<string, string>> {
  if (model !== null) return { ...plan, ...sampling, model: JSON.stringify(model) }
  return sampling === noChange ? plan : { ...plan, ...sampling }
}

/** Names a call to its clients. */
function idHeader(call: RememberedCall): readonly [string, string] {
  return [call.admitted.form.requestIdHeader, call.id]
}

/** The same content in another dialect is another request: its answer has another form. */
function callDigest(dialect: Dialect, request: ChatRequest): Digest {
  return dialect.name === 'chat' ? request.digest : sha256(`${dialect.name} ${request.digest}`)
}

/** Answers a request with an error in the dialect's shape; a body that is still coming is not read. */
export function tellError(response: ServerResponse, cause: unknown, dialect: Dialect): void {
  const error = isPaddockError(cause)
    ? cause
    : new PaddockError('STORE_CORRUPT', 'The proxy failed.', { cause, fix: 'This is a bug: report it with the log.' })
  if (response.headersSent || response.destroyed) {
    response.destroy()
    return
  }
  const wire = dialect.error(error)
  const unread = error.code === 'BODY_TOO_LARGE'
  response.writeHead(wire.status, {
    ...wire.headers,
    'content-length': wire.body.length,
    ...(unread ? { connection: 'close' } : {}),
  })
  response.end(wire.body)
}

/** Request headers without credentials. */
/** As of the messages that the engine is asked with. A prompt that goes on from what is gone by design is not spliced. */
function matchOf(match: ConversationMatch, { put, removed }: InjectedCall): ConversationMatch {
  const shift = put?.shift ?? 0
  const { at, replaced } = match
  return {
    ...match,
    edited: match.edited || removed,
    at: at === -1 ? -1 : at + shift,
    replaced: replaced === null ? null : { ...replaced, at: replaced.at + shift },
  }
}

function keptHeaders(headers: IncomingMessage['headers']): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value === undefined || isCredential(name)) continue
    kept[name] = Array.isArray(value) ? value.join(', ') : value
  }
  return kept
}
