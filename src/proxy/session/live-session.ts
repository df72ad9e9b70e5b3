import { type CallClass, type Clock, InFlightSet, type Id, type Lineage } from '../../core/index.ts'
import {
  type CallCommit,
  CallFaults,
  type ClassifiedCall,
  classifyCall,
  type SessionRecord,
} from '../../trajectory/index.ts'
import type { AnswerListener, RequestHold, SessionPast, SessionStats } from '../contract.ts'
import type { AnswerView } from '../dialects/contract.ts'
import type { TokenStrategyDriver } from '../tokens/contract.ts'
import { MessageThreads } from '../dialects/messages/threads.ts'
import { ResponseCache } from '../dialects/responses/response-cache.ts'
import { Graft } from '../past/graft.ts'
import { Replay } from '../past/replay.ts'
import { type ContinuedAnswer, Conversation } from './conversation.ts'
import { Injector } from '../injection/injector.ts'
import { EchoHandles, handleSecret } from './echo-handles.ts'
import type { RememberedCall } from './remembered-call.ts'
import type { EarlierCall } from './retries.ts'
import { WireTrust } from './wire-trust.ts'

/** A part of a session's budget. */
export type BudgetName = 'maxCalls' | 'maxSampledTokens' | 'maxWallMs'

/** A call in flight, as its session knows it. */
interface SessionCall extends RememberedCall {
  abort(cause: 'session'): Promise<void>
}

/** A session while the proxy serves it: what the rules about retries, budgets and continuation need to know. */
export class LiveSession {
  readonly record: SessionRecord
  readonly tokens: TokenStrategyDriver
  readonly conversation = new Conversation()
  /** What the dialects remember: see `DialectMemory`. */
  readonly handles: EchoHandles
  readonly responses = new ResponseCache()
  readonly threads = new MessageThreads()
  reasoningName: 'reasoning' | 'reasoning_content' = 'reasoning'
  readonly running = new InFlightSet<SessionCall>()
  readonly trust = new WireTrust()
  /** Null: its prompts are what its harness writes. */
  readonly injector: Injector | null
  /** What is answered as it was in the session that this one goes on from; null: nothing is, or not any more. */
  replay: Replay | null
  /** What each request waits for; null: nothing. */
  hold: RequestHold | null = null
  /** What its harness, which resumed another session, says of the past gives way to this; null: nothing does. */
  graft: Graft | null
  /** What becomes of a request that is not the past's, where there is one. */
  readonly onDivergence: SessionPast['onDivergence']
  open = true
  lastError: string | null = null
  /** Its calls that ended without an answer through no fault of the agent. */
  faults = new CallFaults()
  /** Lineages and classes of the calls so far, for classification: one of each kind, in order of appearance. */
  private readonly history: ClassifiedCall[] = []
  /** What the last call was, while the history is as it was then: one like it is the same. */
  private usual: { readonly call: ClassifiedCall; readonly maxTokens: number | null } | null = null
  private lastLineage: Lineage | null = null
  private nextSeq = 0
  private calls = 0
  /** How many calls failed through no fault of the agent. */
  private spared = 0
  private answered = 0
  private readonly answerListeners: AnswerListener[] = []
  private sampledTokens = 0
  private shelvedSince: number | null = null
  private shelved = 0
  private waitSince: number | null = null
  private waited = 0
  /** Calls that a client may ask for again, oldest first. */
  private remembered: { call: RememberedCall; digest: string; idempotencyKey: string | null }[] = []
  private readonly clock: Clock
  private readonly replayWindow: number

  constructor(
    record: SessionRecord,
    {
      tokens,
      clock,
      replayWindow,
      past = null,
    }: {
      readonly tokens: TokenStrategyDriver
      readonly clock: Clock
      readonly replayWindow: number
      /** Of another session, from which this one goes on. */
      readonly past?: SessionPast | null
    },
  ) {
    this.record = record
    this.handles = new EchoHandles(handleSecret(record), past?.ancestors.map(handleSecret))
    this.replay = past === null ? null : new Replay(record.id, past)
    this.onDivergence = past?.onDivergence ?? 'refuse'
    this.graft = this.replay === null || past?.graft === undefined ? null : new Graft(past.graft, this.replay.until)
    const { inject } = record.policy
    this.injector = inject === undefined ? null : new Injector(inject)
    this.tokens = tokens
    this.clock = clock
    this.replayWindow = replayWindow
  }

  rememberClass(call: ClassifiedCall): void {
    this.usual = null
    if (!this.history.some((earlier) => sameKind(earlier, call))) this.history.push(call)
  }

  /** The same lineage, as the object that the call before had where it is equal: what is known of that one holds. */
  knownLineage(lineage: Lineage): Lineage {
    if (this.lastLineage === null || !isSameLineage(lineage, this.lastLineage)) this.lastLineage = lineage
    return this.lastLineage
  }

  /** What a call is, by its lineage and the calls before it; it is one of those from here on. */
  classify(lineage: Lineage, maxTokens: number | null): CallClass {
    const { usual, history } = this
    if (usual?.call.lineage === lineage && usual.maxTokens === maxTokens) return usual.call.callClass
    const { role } = this.record
    const callClass = role === 'judge' || role === 'probe' ? role : classifyCall(lineage, history, { maxTokens })
    const call = { lineage, callClass }
    const kinds = history.length
    this.rememberClass(call)
    if (history.length === kinds) this.usual = { call, maxTokens }
    return callClass
  }

  answerOfToolCall(id: string): ContinuedAnswer | null {
    return this.conversation.byToolCallId(id)
  }

  takeSeq(): number {
    const seq = this.nextSeq
    this.nextSeq += 1
    return seq
  }

  /** From here on the call counts as waiting for the engine. */
  began(
    call: SessionCall,
    {
      digest,
      idempotencyKey,
      retryOf,
    }: { readonly digest: string; readonly idempotencyKey: string | null; readonly retryOf: Id | null },
  ): void {
    this.calls += 1
    this.faults.began(call.id, retryOf)
    if (this.running.size === 0) this.waitSince = this.clock.monotonic()
    this.running.add(call)
    this.remembered.push({ call, digest, idempotencyKey })
    this.forget()
  }

  /** A call failed through no fault of the agent. */
  metFault(callId: Id, cause: string): void {
    if (this.faults.of(callId) === null) this.spared += 1
    this.faults.met(callId, cause)
  }

  ended(call: SessionCall, sampledTokens: number): void {
    this.sampledTokens += sampledTokens
    if (!this.running.delete(call)) return
    if (this.running.size > 0 || this.waitSince === null) return
    this.waited += this.clock.monotonic() - this.waitSince
    this.waitSince = null
  }

  /** The model's answer to a call is whole, whoever reads it. */
  noteAnswered(): void {
    this.answered += 1
  }

  watchAnswers(listener: AnswerListener): void {
    this.answerListeners.push(listener)
  }

  /** An answer is committed, and its client has not been given what it could act on. */
  tellAnswer({ callId, choices }: Pick<CallCommit, 'callId' | 'choices'>, callClass: CallClass): void {
    if (this.answerListeners.length === 0) return
    const messages = choices.map(({ message }) => message)
    for (const listener of this.answerListeners) listener({ callId, callClass, messages })
  }

  /** A call of an earlier process. */
  rememberPast(call: RememberedCall, digest: string, idempotencyKey: string | null): void {
    this.remembered.push({ call, digest, idempotencyKey })
    this.forget()
  }

  /** A call was answered as in the session that this one goes on from: it counts as if the model had been asked. */
  tookReplayed(
    call: RememberedCall,
    {
      digest,
      key,
      sampledTokens,
    }: { readonly digest: string; readonly key: string | null; readonly sampledTokens: number },
  ): void {
    this.calls += 1
    this.answered += 1
    this.sampledTokens += sampledTokens
    this.rememberPast(call, digest, key)
  }

  /** What an earlier process counted. */
  takeUpFigures(past: {
    readonly nextSeq: number
    readonly calls: number
    readonly spared: number
    readonly answered: number
    readonly sampledTokens: number
    readonly waitedMs: number
    readonly faults: CallFaults
    readonly lastError: string | null
  }): void {
    this.nextSeq = past.nextSeq
    this.calls = past.calls
    this.spared = past.spared
    this.answered = past.answered
    this.sampledTokens = past.sampledTokens
    this.waited = past.waitedMs
    this.faults = past.faults
    this.lastError = past.lastError
  }

  /** Calls with these words that a request may repeat, as far as their answers can be given in the form that it asks for. */
  earlier(asked: string, view: AnswerView): readonly EarlierCall[] {
    if (!this.remembered.some(({ digest }) => digest === asked)) return none
    const fitting = this.remembered.filter(({ call, digest }) => digest === asked && (call.fits?.(view) ?? true))
    return fitting.map(({ call, digest, idempotencyKey }) => ({
      callId: call.id,
      digest,
      idempotencyKey,
      state: call.phase === 'failed' ? 'failed' : call.phase === 'answered' ? 'answered' : 'running',
      connected: call.connected,
      sent: call.sent,
      repeated: call.repeated,
    }))
  }

  remember(id: Id): RememberedCall | null {
    return this.remembered.find(({ call }) => call.id === id)?.call ?? null
  }

  /** The budget that is used up, null while there is room. */
  exhausted(): BudgetName | null {
    const { maxCalls, maxSampledTokens, maxWallMs } = this.record.policy.budget
    // A fault spends nothing, but a harness that asks a dead engine for ever is stopped too.
    if (maxCalls !== null && this.calls - Math.min(this.spared, maxCalls) >= maxCalls) return 'maxCalls'
    if (maxSampledTokens !== null && this.sampledTokens >= maxSampledTokens) return 'maxSampledTokens'
    if (maxWallMs !== null && this.clock.now() - this.record.createdAt - this.shelvedMs() >= maxWallMs)
      return 'maxWallMs'
    return null
  }

  /** From here on time is nobody's, until {@link resume}. */
  shelve(): void {
    this.shelvedSince ??= this.clock.now()
  }

  resume(): void {
    this.shelved = this.shelvedMs()
    this.shelvedSince = null
  }

  private shelvedMs(): number {
    return this.shelved + (this.shelvedSince === null ? 0 : this.clock.now() - this.shelvedSince)
  }

  stats(): SessionStats {
    const running = this.waitSince === null ? 0 : this.clock.monotonic() - this.waitSince
    return {
      sessionId: this.record.id,
      open: this.open,
      calls: this.calls,
      answered: this.answered,
      inFlight: this.running.size,
      sampledTokens: this.sampledTokens,
      modelWaitMs: this.waited + running,
      exhausted: this.exhausted(),
      taints: this.faults.causes,
      unsound: this.faults.unsound,
      hasSound: this.faults.hasSound,
      lastError: this.lastError,
      replaying: this.replay !== null,
    }
  }

  /** It has ended, and no retry of it is waited for. */
  private isForgettable({ id, phase, repeated }: RememberedCall): boolean {
    return phase === 'answered' || (phase === 'failed' && (repeated || this.faults.of(id) === null))
  }

  /** Finished answers hold memory: the newest few stay, an unsent one longer than a sent one. */
  private forget(): void {
    if (this.remembered.length <= this.replayWindow) return
    let sent = -this.replayWindow
    let unsent = -4 * this.replayWindow
    for (const { call } of this.remembered) {
      if (!this.isForgettable(call)) continue
      if (call.sent) sent += 1
      else unsent += 1
    }
    if (sent <= 0 && unsent <= 0) return
    this.remembered = this.remembered.filter(({ call }) => {
      if (!this.isForgettable(call)) return true
      return call.sent ? (sent -= 1) < 0 : (unsent -= 1) < 0
    })
  }
}

const none: readonly EarlierCall[] = []

function isSameLineage(a: Lineage, b: Lineage): boolean {
  return (
    a.nativeSession === b.nativeSession &&
    a.nativeAgent === b.nativeAgent &&
    a.nativeParent === b.nativeParent &&
    a.requestKind === b.requestKind &&
    a.toolsDigest === b.toolsDigest &&
    a.toolCount === b.toolCount &&
    a.systemDigest === b.systemDigest &&
    a.userAgent === b.userAgent &&
    a.modelAsked === b.modelAsked &&
    a.retryCount === b.retryCount &&
    a.idempotencyKey === b.idempotencyKey
  )
}

/** What classification looks at is the same. */
function sameKind(one: ClassifiedCall, other: ClassifiedCall): boolean {
  const a = one.lineage
  const b = other.lineage
  return (
    one.callClass === other.callClass &&
    a.systemDigest === b.systemDigest &&
    a.toolsDigest === b.toolsDigest &&
    a.toolCount === b.toolCount &&
    a.requestKind === b.requestKind &&
    a.nativeAgent === b.nativeAgent &&
    a.nativeParent === b.nativeParent
  )
}
