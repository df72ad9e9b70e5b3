import { isPaddockError } from '../../core/index.ts'
import type { PauseElsewhere, PauseOrder, Proxy } from '../../proxy/index.ts'
import type { ToldWeights } from './contract.ts'
import type { NodeSaid } from './node-weights.ts'

/** What holds agents of this node in a pause. */
interface FollowedEngine {
  pauseEngine(order: PauseOrder, elsewhere: PauseElsewhere): Promise<unknown>
  resumeEngine(): Promise<void>
}

/** A node's side: does with its own calls and agents what a coordinator tells of the engine, which it orders nothing. */
export class FollowWeights {
  readonly #proxy: Pick<Proxy, 'engineStatus' | 'followWeights'>
  readonly #engine: FollowedEngine
  #version: string | null = null

  constructor(parts: {
    readonly proxy: Pick<Proxy, 'engineStatus' | 'followWeights'>
    readonly engine: FollowedEngine
  }) {
    this.#proxy = parts.proxy
    this.#engine = parts.engine
  }

  /** Resolves when that is so, or could not be done. */
  async apply({ mark, paused, version, adapter, cacheIsolated }: ToldWeights): Promise<NodeSaid> {
    try {
      // Before anything goes on: what it samples then is of these weights.
      if (version !== null && version !== this.#version) {
        await this.#proxy.followWeights({ version, ...(adapter === null ? {} : { adapter }), cacheIsolated })
        this.#version = version
      }
      const isPaused = this.#proxy.engineStatus().paused !== null
      if (paused !== null && !isPaused) {
        const { frozen, ...order } = paused
        await this.#engine.pauseEngine(order, { frozen })
      }
      if (paused === null && isPaused) await this.#engine.resumeEngine()
      return { mark, failed: null }
    } catch (error) {
      const code = isPaddockError(error) ? error.code : 'INTERNAL'
      return { mark, failed: { code, message: error instanceof Error ? error.message : String(error) } }
    }
  }
}
