import type { AdapterRoutes } from './adapters.ts'

/** What becomes of the KV cache that older weights computed: dropped and computed anew, or kept. */
export type CacheAtUpdate = 'clear' | 'keep'

/** A request to a replica on behalf of a weight update: path under its root, JSON body. */
export interface EngineOrder {
  readonly path: string
  readonly body: unknown
}

/**
 * How an engine is steered around a weight update: its pause, abort, version and cache routes. Wire shapes only; who
 * calls them, and when, is the fleet. Every method rejects with `ENGINE_UNREACHABLE` where the engine is down, and
 * gives `false` or null where this server does not have the route.
 */
export interface EngineControl {
  /** Paths that generate nothing: they are asked also while generation is paused. */
  readonly questions: ReadonlySet<string>
  /** Name of the request member that keeps prefix caches apart; null where the engine takes none. */
  readonly saltMember: string | null
  /** Name of the request member that names a request for `abort`; null where the `X-Request-Id` header does. */
  readonly requestIdMember: string | null
  /** Absent where it takes no LoRA adapters at run time. */
  readonly adapters?: AdapterRoutes
  /** The version of the weights that sample now; null where the server has no route for it. */
  weightVersion(): Promise<string | null>
  /** Gives new weights their name. */
  nameWeights(version: string): Promise<boolean>
  /** Freezes what is running where it stands. `clear`: its KV cache is computed anew when it goes on. */
  freeze(cache: CacheAtUpdate): Promise<boolean>
  /** Lets frozen generations go on. */
  thaw(): Promise<boolean>
  /** Ends running generations by the ids of their requests; they answer with what they have, finish reason `abort`. */
  abort(requestIds: readonly string[]): Promise<boolean>
  /** Forgets the prefix cache. Engines refuse while something runs. */
  clearCache(): Promise<boolean>
  /** Any other order of a weight update; `status` and text of the reply. */
  order(order: EngineOrder): Promise<{ readonly status: number; readonly text: string }>
}
