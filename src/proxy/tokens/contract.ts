import type { Id, LogprobKind } from '../../core/index.ts'
import type { Fork, Segment, Span } from '../../trajectory/index.ts'
import type { Answer } from '../dialects/chat/answer.ts'
import type { ConversationMatch } from '../session/conversation.ts'

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

/** How the ids of a session are captured: one object per session, called once per finished call, in commit order. */
export interface TokenStrategyDriver {
  readonly name: 'record' | 'splice'
  add(call: AnsweredCall): CallTokens
}
