import type { Id, LogprobKind, PaddockError } from '../../core/index.ts'
import type { ChoiceRecord, DriftCause, Fork, Segment, Span, TokenStrategy } from '../../trajectory/index.ts'
import type { Answer } from '../dialects/chat/answer.ts'
import type { ConversationMatch } from '../session/conversation.ts'
import type { UpstreamRequest, UpstreamSink } from '../upstream.ts'

/** A call on its way to the engine, as a chat request whatever the client's dialect. */
export interface OutgoingCall {
  readonly callId: Id
  readonly sessionId: Id
  /** What {@link TokenStrategyDriver.strategyFor} said when the intent was made. */
  readonly strategy: TokenStrategy
  /** Route and body of the engine's chat request, sampling policy applied. */
  readonly path: string
  readonly body: Buffer
  readonly match: ConversationMatch
}

/** Hears the answer of a call in the shape of vLLM's chat route, however it was come by. */
export interface AnswerSink extends UpstreamSink {
  /** What the answer is conditioned on, before its first piece; not told where the reply itself says it. */
  prompted(ids: Int32Array): void
  /** `sampled`: an answer that was sampled although nobody can be told it; its ids belong to the record. */
  failed(error: PaddockError, sampled?: Readonly<Record<string, unknown>>): void
}

/** A finished call as a token strategy sees it. */
export interface AnsweredCall {
  readonly callId: Id
  readonly sessionId: Id
  readonly answer: Answer
  /** False for an answer that broke off: its claimed counts cannot be checked. */
  readonly whole: boolean
  readonly match: ConversationMatch
  /** The messages that the engine was asked with, for spans. */
  readonly messages: readonly unknown[]
  /** Why its prompt does not go on from the answer before although its conversation does; null: the strategy tells. */
  readonly forked: DriftCause | null
  readonly logprobKind: LogprobKind
  /** What the engine promised; a promise not kept is a finding. */
  readonly gives: { readonly tokenIds: boolean; readonly logprobs: boolean; readonly everyLogprob?: false }
  /** How many choices were asked for. */
  readonly n: number
  /** Strings that end an answer. */
  readonly stops: readonly string[]
  /** How many ids the engine's vocabulary has, null where it does not tell. */
  readonly vocabulary: number | null
  /** It became another one since the call was asked. */
  readonly engineChanged: boolean
  /** Adapter or model names as used, for the policy of the sampled tokens. */
  readonly model: string | null
}

/** What a call adds to the token tree. */
export interface CallTokens {
  readonly segments: readonly Segment[]
  readonly spans: readonly Span[]
  readonly promptLeaf: Id | null
  readonly forks: readonly Fork[]
  /** Integrity findings, sorted and without repetition. */
  readonly findings: readonly string[]
}

/** A call that an earlier process left in the log, as a token strategy sees it. */
export interface PastCall {
  readonly callId: Id
  readonly segments: readonly Segment[]
  readonly choices: readonly ChoiceRecord[]
  readonly findings: readonly string[]
  readonly messages: readonly unknown[]
  /** The engine's chat request, as far as it decides how messages become text. */
  readonly body: Buffer
}

/** How the ids of a session are captured: one object per session. */
export interface TokenStrategyDriver {
  /** The strongest that the session's policy, the engine and this request allow. Kept in the call's intent. */
  strategyFor(messages: readonly unknown[]): TokenStrategy
  /** Asks the engine. */
  send(call: OutgoingCall, sink: AnswerSink): UpstreamRequest
  /** Hangs a finished call on the tree. Called once per call that was sent, in commit order. */
  add(call: AnsweredCall): CallTokens
  /** Hangs a call of an earlier process on the tree, in the order of the log. */
  takeUp(call: PastCall): void
}
