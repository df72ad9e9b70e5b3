import type { CallClass, Clock } from '../core/index.ts'
import type { CallCommit, CallIntent, Recorder } from '../trajectory/index.ts'
import type { CallEvent } from './contract.ts'
import type { Answer } from './dialects/chat/answer.ts'
import type { ChatRequest } from './dialects/chat/request.ts'
import type { ReplyForm } from './dialects/contract.ts'
import type { BothRenders } from './injection/clean.ts'
import type { InjectedCall } from './injection/injector.ts'
import type { EngineAdapter } from './engines/contract.ts'
import type { KnownFacts } from './engines/facts.ts'
import type { ConversationMatch } from './session/conversation.ts'
import type { LiveSession } from './session/live-session.ts'
import type { CallTokenDriver } from './tokens/beside.ts'
import type { SideChannelSubject } from './side-channels.ts'

/** What a running call needs of the proxy around it. */
export interface CallSurroundings<Call> {
  readonly recorder: Recorder
  readonly engine: EngineAdapter
  readonly clock: Clock
  readonly keepAliveMs: number
  readonly stallMs: number
  /** A client that leaves after so much silence was made to leave. */
  readonly stallTaintMs: number
  /** Called once when the engine has nothing more to do with the call. */
  readonly released: () => void
  /** Stores that the harness sees a fault which is not its own. */
  readonly taint: (call: Call, cause: string) => Promise<void>
  /** Keeps what the engine gave beside ids and logprobs, null where there is nothing. Rejects as the store does. */
  readonly keepBeside: (answer: Answer, about: SideChannelSubject) => Promise<void> | null
  /** Called once when a call ends before it was admitted. */
  readonly abandoned: (call: Call) => void
  /** Called once when the whole answer has left for a client. */
  readonly delivered: (call: Call) => void
  /** Called once when the call is committed (or could not be). */
  readonly settled: (call: Call, outcome: EndedCall) => void
}

/** How a call came out, for events and statistics. */
export interface EndedCall {
  readonly commit: CallCommit
  /** The engine streamed it, whatever the client asked for. */
  readonly streamed: boolean
  readonly promptTokens: number | null
  readonly sampledTokens: number | null
  readonly tainted: string | null
  readonly line: CallEvent
}

/** A call that was admitted: the intent and what is sent to the engine. */
export interface AdmittedCall {
  readonly session: LiveSession
  /** The session's, or of a call beside its conversation. */
  readonly tokens: CallTokenDriver
  /** Without its body once it is stored, and so {@link request} and {@link body}. */
  intent: CallIntent
  /** Canonical, whatever the harness speaks. */
  readonly request: ChatRequest
  /** How the answer is written for the harness. */
  readonly form: ReplyForm
  readonly match: ConversationMatch
  /** What the policy sees beside the harness's words; null: nothing. */
  readonly injected: (InjectedCall & { readonly renders: () => Promise<BothRenders> }) | null
  /** What the engine was known to be when the intent was made. */
  readonly facts: KnownFacts | null
  readonly path: string
  /** Body members that Paddock wrote, by name. */
  readonly set: Readonly<Record<string, string>>
  body: Buffer
  /** The engine is asked without `stream` and the stream is synthesised. */
  readonly buffered: boolean
  readonly callClass: CallClass
  /** Alternatives per sampled token that the engine was asked for. */
  readonly topLogprobs: number
}
