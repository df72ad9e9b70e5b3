import type { Id, LogprobKind } from '../../core/index.ts'
import type { Fork, Segment, Span, TokenStrategy } from '../../trajectory/index.ts'
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

/** A finished call as a token strategy sees it. */
export interface AnsweredCall {
  readonly callId: Id
  readonly sessionId: Id
  readonly answer: Answer
  /** False for an answer that broke off: its claimed counts cannot be checked. */
  readonly whole: boolean
  readonly match: ConversationMatch
  /** The messages of the request, for spans. */
  readonly messages: readonly unknown[]
  readonly logprobKind: LogprobKind
  /** What the engine promised; a promise not kept is a finding. */
  readonly gives: { readonly tokenIds: boolean; readonly logprobs: boolean }
  /** Adapter or model names as used, for the policy of the sampled tokens. */
  readonly model: string | null
}

/** What a call adds to the token tree. */
export interface CallTokens {
  readonly segments: readonly Segment[]
  readonly spans: readonly Span[]
  readonly promptLeaf: Id | null
  readonly forks: readonly Fork[]
  /** Sampled segment by choice index. */
  readonly choiceSegments: ReadonlyMap<number, Id>
  /** Integrity findings, sorted and without repetition. */
  readonly findings: readonly string[]
}

/** How the ids of a session are captured: one object per session. */
export interface TokenStrategyDriver {
  /** The strongest that the session's policy, the engine and this request allow. Kept in the call's intent. */
  strategyFor(messages: readonly unknown[]): TokenStrategy
  /** Asks the engine. The sink hears an answer of the engine's chat route, however it was come by. */
  send(call: OutgoingCall, sink: UpstreamSink): UpstreamRequest
  /** Hangs a finished call on the tree. Called once per call that was sent, in commit order. */
  add(call: AnsweredCall): CallTokens
}
