import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import {
  type Digest,
  InFlightSet,
  type Id,
  isPaddockError,
  isWork,
  newId,
  PaddockError,
  present,
} from '../core/index.ts'
import { type CallIntent, unsoundnessOf, type WireFault, wireFaultOf } from '../trajectory/index.ts'
import { type AskedGeneration, callDigest, type GenerationRoute, idHeader, keptHeaders } from './asked-generation.ts'
import { isAnswered } from './is-answered.ts'
import { faultOf } from './blame.ts'
import type { EndedCall, CallSurroundings } from './call-contract.ts'
import { traceCall } from './call-span.ts'
import type { ProxyEvent, ProxyLimits } from './contract.ts'
import { engineBody } from './engine-body.ts'
import { asFailure } from './engine-reply.ts'
import type { AnswerView } from './dialects/contract.ts'
import type { EngineRequestPlan } from './engines/contract.ts'
import { shownUrl } from './engines/http.ts'
import { untoldDefaults, withDefaults } from './engines/facts.ts'
import type { KnownEngine } from './engines/known-engine.ts'
import { readBody } from './http/body.ts'
import { Client } from './http/client.ts'
import { PastCalls } from './past/past-calls.ts'
import { renderBoth } from './injection/clean.ts'
import { RunningCall } from './running-call.ts'
import type { Admission } from './session/admission.ts'
import type { InjectedCall } from './injection/injector.ts'
import { lossOf } from './session/wire-trust.ts'
import type { ConversationMatch } from './session/conversation.ts'
import type { BudgetName, LiveSession } from './session/live-session.ts'
import { type EarlierCall, judgeRetry } from './session/retries.ts'
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

/** Running totals, for statistics. */
export interface GenerationTotals {
  calls: number
  sampledTokens: number
  promptTokens: number
}

/** Turns of the event loop in which a hang-up is heard that the sockets hold. */
const hangUpTurns = 3

/** So many broken answers in a row make an event. */
const mostBroken = 3

/** The generation routes of all dialects: body, retry rule, budget, admission, then a {@link RunningCall}. */
export class Generations {
  readonly totals: GenerationTotals = { calls: 0, sampledTokens: 0, promptTokens: 0 }
  readonly running = new InFlightSet<RunningCall>()
  private readonly around: GenerationSurroundings
  /** One for all calls: what is told of a call names it. */
  private readonly aroundCalls: CallSurroundings<RunningCall>
  private readonly commits = new Set<() => void>()
  private readonly past: PastCalls
  /** Answers in a row with logprobs that are no numbers. */
  private brokenInRow = 0
  /** Errors whose fault is recorded with their call. */
  private readonly told = new WeakSet<PaddockError>()

  constructor(around: GenerationSurroundings) {
    this.around = around
    this.aroundCalls = {
      ...around,
      taint: ({ id, admitted: { session, digest } }, cause) => {
        session.metFault(id, cause)
        return this.taint(session, { callId: id, cause, request: digest })
      },
      released: () => around.admission.leave(),
      abandoned: (call) => this.forget(call),
      delivered: (call) => this.settleDelivery(call.admitted.session, call.id, 'sent'),
      settled: (call, ended) => this.settled(call, ended),
    }
    this.past = new PastCalls({
      recorder: around.recorder,
      clock: around.clock,
      intentOf: (session, asked, own) => this.intentOf(session, asked, own),
      refuse: (session, asked, error) => this.refuseFaulted(session, this.admit(session, asked), error),
      delivered: (session, callId) => this.deliveredPast(session, callId),
    })
  }

  /** Serves one generation request of a session. Rejects with a `PaddockError` that is still to be told. */
  async serve(
    session: LiveSession,
    route: GenerationRoute,
    http: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    try {
      await this.answer(session, route, http, response)
    } catch (error) {
      const fault = isPaddockError(error) && this.told.has(error) ? null : faultOf(error)
      if (fault !== null) await this.taint(session, { callId: newId(), cause: fault }).catch(() => undefined)
      throw error
    }
  }

  private async answer(
    session: LiveSession,
    route: GenerationRoute,
    http: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const bytes = await readBody(http, this.around.limits.maxBodyBytes)
    const known = this.around.known(session.record.id)
    // What a call is recorded as sampled by, and how it is asked, must be true when it is asked.
    if (known?.doubtful === true) await known.learnSoon()
    const { asked, received, lost } = this.past.grafted(session, route, { bytes, headers: http.headers })
    const request = asked.chat
    const digest = callDigest(route.dialect, request)
    if (session.hold !== null) {
      const callClass =
        route.dialect.beside ?? session.classify(session.knownLineage(request.lineage), request.asked.maxTokens)
      await session.hold({ digest, callClass, body: received ?? asked.body })
    }
    if (!session.open) throw new PaddockError('SESSION_CLOSED', `The session ${session.record.id} is closed.`)
    const view = { streamed: request.streamed, wantsUsage: request.wantsUsage, wantsLogprobs: request.wantsLogprobs }
    const judgement = judgeRetry(await this.earlier(session, digest, view), {
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
    if (lost !== null) await this.past.lostGraft(session, generation, lost)
    if (session.replay !== null && (await this.past.replayed(session, session.replay, generation, response))) return
    const call = this.admit(session, generation)
    if (received !== null && session.graft !== null) this.past.tellGraft(session, session.graft, call, received)
    const used = session.exhausted()
    if (used !== null) await this.refuseOverBudget(session, call, used)
    if (session.trust.refusedFor !== null) await this.refuseUntrusted(session, call, session.trust.refusedFor)
    const client = new Client(response, view, idHeader(call))
    session.began(call, { digest, idempotencyKey: request.lineage.idempotencyKey, retryOf: generation.retryOf })
    this.running.add(call)
    call.attach(client)
    if (judgement.kind === 'again') this.supersede(session, judgement.callId, call)
    try {
      if (this.around.draining()) throw new PaddockError('PROXY_DRAINING', 'The proxy takes no new calls.')
      this.around.admission.enter(() => call.start())
    } catch (error) {
      await call.turnAway(asFailure(error))
    }
  }

  /**
   * The calls that a request may repeat. A client that gave one of them up and asks again at once may be read before its hang-up is:
   * what the sockets hold already is heard first.
   */
  private async earlier(session: LiveSession, digest: Digest, view: AnswerView): Promise<readonly EarlierCall[]> {
    for (let turn = 0; turn < hangUpTurns; turn += 1) {
      const found = session.earlier(digest, view)
      if (!found.some(({ state, connected }) => state === 'running' && connected)) return found
      await setImmediate()
    }
    return session.earlier(digest, view)
  }

  /** Resolves when no call is running. */
  async idle(): Promise<void> {
    while (this.running.size > 0) await new Promise<void>((resolve) => this.commits.add(resolve))
  }

  /**
   * Writes down all that stood before the call to fork at, for a harness that does not ask for it. Rejects with `STORE_*`, and with
   * `BODY_*` where a recorded request cannot be read any more.
   */
  givePast(session: LiveSession): Promise<void> {
    return this.past.givePast(session)
  }

  /** An answer of an earlier process has left for a client. */
  deliveredPast(session: LiveSession, callId: Id): void {
    session.conversation.noteSent(callId)
    this.settleDelivery(session, callId, 'sent')
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
        set,
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
    if (!earlier.recorded) return
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

  /** The harness sees a fault of the engine, which is recorded. Throws `ENGINE_UNTRUSTED`. */
  private async refuseUntrusted(session: LiveSession, call: RunningCall, fault: WireFault): Promise<never> {
    const { name, url } = this.around.engine
    const problem = `The engine ${name} at ${shownUrl(url)} keeps telling what cannot be true: \`${fault}\`.`
    const error = new PaddockError('ENGINE_UNTRUSTED', problem, { data: { fault } })
    return this.refuseFaulted(session, call, error)
  }

  /** No work of the agent: recorded as refused, and as a fault. Throws the error. */
  private async refuseFaulted(session: LiveSession, call: RunningCall, error: PaddockError): Promise<never> {
    await call.refuse(error)
    await this.taint(session, { callId: call.id, cause: error.code })
    this.told.add(error)
    throw error
  }

  /** Learns from an answer how far the engine's next ones are believed. */
  private judge(call: RunningCall, { commit, streamed }: EndedCall): void {
    const { session } = call.admitted
    const { engine } = this.around
    const { findings } = commit
    // What never gives ids loses none, and an answer that was cut off may have had more to tell.
    const loss = engine.gives.tokenIds && commit.outcome.kind === 'complete' ? lossOf(findings) : null
    const hasSampled = commit.segments.some(({ origin }) => origin === 'sampled')
    if (loss === null && !hasSampled) return
    const unsoundness = unsoundnessOf(findings)
    if (hasSampled) session.faults.sampled(unsoundness)
    const wireFault = wireFaultOf(findings)
    if (session.trust.note(wireFault, loss, streamed)) {
      const what = session.trust.refusedFor === null ? 'whole answers are asked for' : 'its calls are refused'
      this.distrust(session, `${wireFault ?? loss}; ${what} from now on`)
    }
    this.brokenInRow = unsoundness !== null && wireFault === null ? this.brokenInRow + 1 : 0
    if (this.brokenInRow === mostBroken)
      this.distrust(session, `${unsoundness} in ${mostBroken} answers in a row; they do not train`)
  }

  private distrust(session: LiveSession, why: string): void {
    const detail = `session ${session.record.id}: ${why}`
    this.around.emit({ type: 'engine', what: 'distrusted', replica: shownUrl(this.around.engine.url), detail })
  }

  private settled(call: RunningCall, ended: EndedCall): void {
    const { emit } = this.around
    const { session } = call.admitted
    this.judge(call, ended)
    session.ended(call, ended.sampledTokens ?? 0)
    this.forget(call)
    const { outcome } = ended.commit
    if (isAnswered(outcome) && isWork(ended.line.callClass)) session.noteAnswered()
    if (outcome.kind === 'complete') session.faults.answered(call.id)
    const error = outcome.kind === 'engine_error' || outcome.kind === 'refused' ? outcome.code : null
    session.lastError = session.faults.of(call.id) ?? error
    this.totals.calls += 1
    this.totals.sampledTokens += ended.sampledTokens ?? 0
    this.totals.promptTokens += ended.promptTokens ?? 0
    emit(ended.line)
    traceCall(ended.line, this.around.engine.name, ended.commit.endedAt)
  }

  private settleDelivery(session: LiveSession, callId: Id, delivery: 'sent' | 'echoed'): void {
    const { id: sessionId, rolloutId } = session.record
    session.faults.answered(callId)
    this.around.emit({ type: 'delivery', rolloutId, sessionId, callId, delivery })
    this.around.recorder.settleDelivery(callId, delivery).catch(() => {
      // A store that fails here fails the next intent too, and that one is told.
    })
  }

  /** The harness sees a fault that is not its own: kept in the log beside the call, of which only this may be there. */
  private taint(
    session: LiveSession,
    { callId, cause, request }: { readonly callId: Id; readonly cause: string; readonly request?: Digest },
  ): Promise<void> {
    const { id: sessionId, rolloutId } = session.record
    session.faults.met(callId, cause)
    session.lastError = cause
    this.around.emit({ type: 'taint', rolloutId, sessionId, callId, cause })
    const about = { id: newId(), at: this.around.clock.now(), rolloutId, sessionId }
    return this.around.recorder.appendEvent({ ...about, kind: 'taint', cause, callId, ...present({ request }) })
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
