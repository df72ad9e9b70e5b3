import type { Dispatcher } from 'undici'
import type { EngineFingerprint, LogprobKind } from '../../core/index.ts'
import type { EngineControl } from './control.ts'
import type { EngineFacts, Learning } from './facts.ts'
import type { PromptIds } from './prompt-ids.ts'
import type { UpstreamSink } from '../upstream.ts'
import type { EngineAsk, TokenEngine } from './token-engine.ts'

/** What is asked of an engine beyond what the harness asked, so that the recorder gets its tokens. */
export interface EngineRequestPlan {
  /** Path under the engine's root, for example `/v1/chat/completions`. */
  readonly path: string
  /** Members to set in the request body, JSON texts. */
  readonly set: Readonly<Record<string, string>>
  readonly remove: readonly string[]
  /** `buffer`: ask for a whole answer and synthesise the stream, because this engine drops ids while streaming. */
  readonly transport: 'as_asked' | 'buffer'
}

/** The facts of a request on which an engine's plan depends. */
export interface EngineRequestFacts {
  readonly streamed: boolean
  readonly hasTools: boolean
  /** The harness asked for logprobs itself. */
  readonly askedLogprobs: boolean
  /** Alternatives per token that the request has, or is to have where the harness asks for no logprobs; null: it says nothing. */
  readonly topLogprobs: number | null
  /** This engine's streams told what cannot be true: a whole answer is asked for, and the stream made of it. */
  readonly wholeOnly: boolean
}

/** What an engine says of given ids. */
export interface ScoredIds {
  /** Shape [T], natural log; null for the first, which nothing stands before. */
  readonly logprobs: readonly (number | null)[]
  /** Of the weights that computed them, null where the answer does not say. */
  readonly weightVersion: string | null
}

/** What is sampled behind given ids. */
export interface ContinuationTerms {
  readonly ids: PromptIds
  /** Null: the engine's own. */
  readonly model: string | null
  /** How many continuations. */
  readonly k: number
  readonly maxTokens: number
  readonly temperature: number
}

/** A route that samples behind given ids, apart from any conversation. Wire shapes only. */
export interface ContinuationRoute {
  /** No transform but the temperature is in force, whatever the server's defaults are. */
  ask(terms: ContinuationTerms): EngineAsk
  /** A whole answer in the shape of vLLM's chat route; null where the payload is none. */
  read(payload: Buffer): Readonly<Record<string, unknown>> | null
}

/** An inference backend behind the proxy. Plain object from a factory; `vllmEngine`, `openaiEngine`. */
export interface EngineAdapter {
  readonly name: string
  /** Root without `/v1` and without trailing slash. */
  readonly url: string
  readonly apiKey: string | null
  /** What this engine promises; a promise not kept is a finding on the call. `everyLogprob` false: it leaves some out by design. */
  readonly gives: { readonly tokenIds: boolean; readonly logprobs: boolean; readonly everyLogprob?: false }
  /** As configured, or as last learned; what was true for a call stands with its tokens. */
  readonly logprobKind: LogprobKind
  planChat(facts: EngineRequestFacts): EngineRequestPlan
  /**
   * Turns what this engine's chat route says into the shape of vLLM's with `return_token_ids`, which is what everything
   * behind it reads. Absent where it is that shape already.
   */
  readonly readsChat?: (sink: UpstreamSink) => UpstreamSink
  /**
   * The ids of a chat request's prompt as the engine renders it; absent where it has no route for that.
   * Throws `ENGINE_UNREACHABLE`, `ENGINE_ERROR`, `CONTEXT_OVERFLOW`.
   */
  readonly promptIds?: (chat: Uint8Array) => Promise<readonly number[]>
  /**
   * Logprobs of given ids, each given those before it, at temperature 1 and without truncation. Absent where the engine has no
   * route for that. `adapter`: under that one. Throws `ENGINE_UNREACHABLE`, `ENGINE_ERROR`, `ENGINE_UNTRUSTED` for an answer that cannot be of
   * these ids.
   */
  readonly score?: (ids: PromptIds, adapter: string | null) => Promise<ScoredIds>
  /** Absent where the engine samples behind no given ids, or tells too little of what it sampled there. */
  readonly continuations?: ContinuationRoute
  /**
   * The ids of a text as it stands, without special tokens of its own. Absent where the engine has no route for that. Throws
   * `ENGINE_UNREACHABLE`, `ENGINE_ERROR`.
   */
  readonly textIds?: (text: string) => Promise<readonly number[]>
  /** Members that hold the model to so many tokens of thinking, JSON texts; absent where nothing would. */
  readonly boundThinking?: (tokens: string) => Readonly<Record<string, string>>
  /** Asks the engine what it is. Unknown parts are null. Throws `ENGINE_UNREACHABLE`. */
  fingerprint(): Promise<EngineFingerprint>
  /** The same with what else it tells of itself. Throws `ENGINE_UNREACHABLE`. */
  learn(how: Learning): Promise<EngineFacts>
  /** Its token-in/token-out routes, where this kind of engine can have them: what the strategy `splice` needs. */
  readonly tokens?: TokenEngine
  /** Its chat route never tells the ids of a prompt: the strategy `record` goes by its token routes too. */
  readonly recordsByTokens?: boolean
  /** Its pause, abort and weight routes, where this kind of engine can have them. */
  readonly control?: EngineControl
  /** Where requests go; null: a pool of the proxy's own. For tests and for engines behind unix sockets. */
  readonly dispatcher: Dispatcher | null
}
