import type { PolicySpan, scanMembers } from '../../core/index.ts'
import type { PromptIds } from './prompt-ids.ts'

/** A request to an engine: path under its root, JSON body. */
export interface EngineAsk {
  readonly path: string
  readonly body: Buffer
}

/** The engine's chat request, whose members everybody looks at. */
export interface ChatText {
  readonly bytes: Buffer
  /** A member's JSON text, null where it is absent or the literal null. */
  text(name: string): string | null
  /** The request with its last message alone. */
  readonly lastOnly: string
}

/** A prompt as the engine renders it. */
export interface RenderedPrompt {
  readonly ids: PromptIds
  /** Images or sound stand in it: the ids alone do not say what the model sees. */
  readonly media: boolean
  /** The engine's own reply; it carries the sampling parameters to `generate`. */
  readonly reply: Buffer
  /** Where its members lie, for an engine whose generate request is this reply with other members. */
  readonly scanned: ReturnType<typeof scanMembers> | null
}

/** Output tokens `[start, end)` and the weights that sampled them. */
export interface VersionSpan {
  readonly version: string
  readonly start: number
  readonly end: number
  /** Null: as its place among the others says. */
  readonly mixing?: PolicySpan['mixing'] | null
  /** The LoRA adapter that {@link version} is, null: none. Absent: as of the whole answer, and `version` as the server says it. */
  readonly adapter?: string | null
}

/** One choice of a generated answer, or a part of it. */
export interface GeneratedPart {
  readonly index: number
  readonly ids: readonly number[]
  /** One per id, null where the engine gave none or no number. Empty: no logprobs at all. */
  readonly logprobs: readonly (number | null)[]
  /** The engine's own entries behind `logprobs`, for a client that asked for alternatives. */
  readonly entries: readonly Readonly<Record<string, unknown>>[]
  readonly finishReason: string | null
  /** The stop string that ended it, where the engine says. */
  readonly stopReason: string | null
  /** The decoded text, where the engine gives it beside the ids. */
  readonly text: string | null
  /** Base64 of which experts each token was routed to, in the engine's own layout. */
  readonly routedExperts: string | null
  readonly weightVersions: readonly VersionSpan[]
}

/** A whole generated answer or one event of its stream. */
export interface Generated {
  readonly parts: readonly GeneratedPart[]
  /** What the engine says it was conditioned on, null where it does not say. */
  readonly promptIds: Int32Array | null
  readonly usage: Readonly<Record<string, unknown>> | null
  readonly created: number | null
  readonly model: string | null
  readonly error: Readonly<Record<string, unknown>> | null
}

/** A chat request to the engine's reply with its prompt, in as many questions as it takes. */
export async function askRender<Reply extends { readonly status: number; readonly body: Buffer }>(
  engine: Pick<TokenEngine, 'render' | 'tokenize'>,
  ask: (ask: EngineAsk) => Promise<Reply>,
  chat: Buffer,
): Promise<Reply> {
  const reply = await ask(engine.render(chat))
  const next = reply.status >= 400 ? null : (engine.tokenize?.(reply.body) ?? null)
  return next === null ? reply : ask(next)
}

/** What is turned back into a message. */
export interface DerenderFacts {
  readonly chat: ChatText
  readonly promptIds: PromptIds
  readonly callId: string
}

/** A chat chunk, and what the next step of the same choice needs. */
export interface DerenderedChunk {
  readonly chunk: Readonly<Record<string, unknown>>
  readonly state: unknown
}

/** Which of its token routes an engine serves. */
export interface TokenAbility {
  /**
   * Who turns sampled ids into a message: `derender`: a route for that, also step by step (vLLM); `chat`: the chat route
   * takes ids in the place of its messages and answers as ever (SGLang from 0.5.13); `parse`: routes that parse text, for
   * whole answers (SGLang's `/parse_function_call` and `/separate_reasoning`).
   */
  readonly way: 'derender' | 'chat' | 'parse'
  /** Ids can be turned into deltas while they come; else only a whole answer can. */
  readonly streams: boolean
  /** Messages that end with an answer can be rendered without opening a turn behind it. */
  readonly endsTurns: boolean
  /** Context length, null where the engine does not say. */
  readonly maxModelLen: number | null
}

/** How ids are generated from. */
export interface GenerateTerms {
  readonly streamed: boolean
  readonly chat: ChatText
  /** So many of the last ids are the beginning of the answer: they count against its `max_tokens`. Default 0. */
  readonly spent?: number
}

/** Asks the engine on behalf of one call. */
export type AskEngine = (ask: EngineAsk) => Promise<{ readonly status: number; readonly body: Buffer }>

/** Ids to deltas, one question for each piece of an answer. */
export interface DerenderRoute {
  ask(facts: DerenderFacts, part: GeneratedPart, state: unknown): EngineAsk
  /** Null where the reply is no chunk. */
  read(reply: Buffer): DerenderedChunk | null
}

/**
 * Tokens in, tokens out, with the engine's own template and parsers: render a chat request to ids, generate from ids,
 * turn ids into a chat message. Wire shapes only; who sends them is the token strategy.
 */
export interface TokenEngine {
  /** Finds out which routes there are; generates a token at most. Null where there are none. Throws `ENGINE_UNREACHABLE`. */
  probe(): Promise<TokenAbility | null>
  /** A question beside all calls. Throws `ENGINE_UNREACHABLE`. */
  readonly ask: AskEngine
  render(chat: Buffer): EngineAsk
  /** The second question where the first reply is the prompt as text; null where it is none. Absent where it is ids. */
  readonly tokenize?: (reply: Buffer) => EngineAsk | null
  /** Null where the reply is no rendered prompt. */
  readRender(reply: Buffer): RenderedPrompt | null
  /** The chat request with ids in the place of what its messages render to. Way `chat` only. */
  chatFrom?(chat: ChatText, ids: PromptIds): EngineAsk
  /** Way `parse`: false for a request with a grammar that only the chat route knows how to make. */
  takes?(chat: ChatText): boolean
  /** `prompt` is what was rendered from `chat`; `ids` are what is to be conditioned on instead. */
  generate(prompt: RenderedPrompt, ids: PromptIds, how: GenerateTerms): EngineAsk
  /** Null where the payload is no answer. */
  readGenerated(payload: Buffer): Generated | null
  /**
   * A whole answer as a chat completion, made by the engine's own parsers. Null where it could not be made; a failure of
   * the server rejects, so that it can be asked again.
   */
  derenderWhole(
    facts: DerenderFacts,
    generated: Generated,
    ask: AskEngine,
  ): Promise<Readonly<Record<string, unknown>> | null>
  /** Way `derender` only. */
  readonly steps?: DerenderRoute
}
