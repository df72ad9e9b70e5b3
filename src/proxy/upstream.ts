import type { PaddockError } from '../core/index.ts'
import type { KnownFacts } from './engines/facts.ts'

/** What comes back from the engine, in order. Exactly one of `end` and `failed` is the last. */
export interface UpstreamSink {
  head(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void
  /** Empty bytes say only that the engine is not forgotten: the request waits for a pause to end. */
  chunk(bytes: Buffer): void
  end(): void
  failed(error: PaddockError): void
}

/** Which weights a request met. Null where nobody can say. */
export interface SeenWeights {
  /** A version that was in force before the request began, and one that was after it ended. */
  readonly before: string | null
  readonly after: string | null
  /** A prefix cache of older weights was open to the request. */
  readonly staleCache: boolean
  /** The keys and values of what runs through a weight update are computed anew. */
  readonly recomputed: boolean
  /** What answered the request, as it is known behind its end. */
  readonly facts: KnownFacts | null
  /** The LoRA adapter that it was asked under; {@link before} and {@link after} are of it already. */
  readonly adapter: SeenAdapter | null
}

/** An adapter that a request was asked under. */
export interface SeenAdapter {
  /** As the server calls it. */
  readonly name: string
  /** The version that it is. */
  readonly version: string
  /** What the server called its own weights when it got the adapter, and calls them in answers. Null: it does not say. */
  readonly base: string | null
}

/**
 * The version that sampled, of what a server says of its own weights. Where these are not those that the adapter was put on, it is no
 * version of ours, and is left as it is.
 */
export function versionUnder(adapter: SeenAdapter | null, told: string): string
export function versionUnder(adapter: SeenAdapter | null, told: string | null): string | null
export function versionUnder(adapter: SeenAdapter | null, told: string | null): string | null {
  if (adapter === null) return told
  return adapter.base === null || told === adapter.base ? adapter.version : told
}

/** Of a request that was not asked yet. */
export function unseen(told: string | null): SeenWeights {
  return { before: null, after: told, staleCache: false, recomputed: false, facts: null, adapter: null }
}

/** A request that is with the engine. */
export interface UpstreamRequest {
  pause(): void
  resume(): void
  /** Cuts the connection to the engine, which stops generating; the sink is told nothing more. */
  abort(): void
  /**
   * Which weights the request met, once it has ended. `told`: what the reply itself said last, so that nobody has to ask.
   * Never rejects; at once where nobody has to be asked.
   */
  weights(told: string | null): SeenWeights | Promise<SeenWeights>
}

/** Who asks. */
export interface UpstreamIds {
  readonly callId: string
  readonly sessionId: string
  /** Name of the request at the engine; default: the call's id. */
  readonly requestId?: string
}

/** How a request may be treated. */
export interface UpstreamTerms {
  /**
   * Told when a weight update is about to end the request: what comes afterwards, an end with finish reason `abort` or a
   * failure, is not the engine's own. Requests without it are waited for.
   */
  readonly interrupted?: () => void
}

/** The way to the engine, whatever number of replicas it has. */
export interface Upstream {
  send(path: string, body: Buffer, ids: UpstreamIds, sink: UpstreamSink, terms?: UpstreamTerms): UpstreamRequest
}
