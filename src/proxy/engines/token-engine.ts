/** A request to an engine: path under its root, JSON body. */
export interface EngineAsk {
  readonly path: string
  readonly body: Buffer
}

/** A prompt as the engine renders it. */
export interface RenderedPrompt {
  readonly ids: Int32Array
  /** Images or sound stand in it: the ids alone do not say what the model sees. */
  readonly media: boolean
  /** The engine's own reply; it carries the sampling parameters to `generate`. */
  readonly reply: Buffer
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
  readonly weightVersions: readonly { readonly version: string; readonly start: number; readonly end: number }[]
}

/** A whole generated answer or one event of its stream. */
export interface Generated {
  readonly parts: readonly GeneratedPart[]
  /** What the engine says it was conditioned on, null where it does not say. */
  readonly promptIds: readonly number[] | null
  readonly usage: Readonly<Record<string, unknown>> | null
  readonly created: number | null
  readonly model: string | null
  readonly error: Readonly<Record<string, unknown>> | null
}

/** What is turned back into a message. */
export interface DerenderFacts {
  /** The engine's chat request. */
  readonly chat: Buffer
  readonly promptIds: Int32Array
  readonly callId: string
}

/** A chat chunk, and what the next step of the same choice needs. */
export interface DerenderedChunk {
  readonly chunk: Readonly<Record<string, unknown>>
  readonly state: unknown
}

/** Which of its token routes an engine serves. */
export interface TokenAbility {
  /** Ids can be turned into deltas while they come; else only a whole answer can. */
  readonly derendersStreams: boolean
}

/**
 * Tokens in, tokens out, with the engine's own template and parsers: render a chat request to ids, generate from ids,
 * turn ids into a chat message. Wire shapes only; who sends them is the token strategy.
 */
export interface TokenEngine {
  /** Asks without generating anything. Null where the routes are missing. Throws `ENGINE_UNREACHABLE`. */
  probe(): Promise<TokenAbility | null>
  render(chat: Buffer): EngineAsk
  /** Null where the reply is no rendered prompt. */
  readRender(reply: Buffer): RenderedPrompt | null
  /** `prompt` is what was rendered from `chat`; `ids` are what is to be conditioned on instead. */
  generate(
    prompt: RenderedPrompt,
    ids: Int32Array,
    how: { readonly streamed: boolean; readonly chat: Buffer },
  ): EngineAsk
  /** Null where the payload is no JSON object. */
  readGenerated(payload: Buffer): Generated | null
  derenderWhole(facts: DerenderFacts, parts: readonly GeneratedPart[]): EngineAsk
  derenderStep(facts: DerenderFacts, part: GeneratedPart, state: unknown): EngineAsk
  /** Null where the reply is no chat completion. */
  readDerendered(reply: Buffer): Readonly<Record<string, unknown>> | null
  readStep(reply: Buffer): DerenderedChunk | null
}
