import type { Id } from '../../core/index.ts'
import type { PauseOrder, PauseOutcome, Proxy, WeightsOrder, WeightsOutcome } from '../../proxy/index.ts'
import type { Shelving } from './shelving.ts'

/** How many agents stand still for an update. */
export interface Shelved {
  readonly shelved: number
}

/**
 * The engine as those ask it who move weights. Agents of runs that say so (`AtWeightUpdate`) are shelved before generation is
 * paused, and go on when it does, whoever lets it. One that cannot be made to stand still goes on as the mode of the pause says.
 */
export class EngineOverUpdates {
  readonly #proxy: Pick<Proxy, 'engineStatus' | 'pauseEngine' | 'resumeEngine' | 'updateWeights'>
  readonly #shelving: Pick<Shelving, 'shelveForUpdate' | 'resumeFromUpdate'>
  readonly #onMissed: (rolloutId: Id, why: unknown) => void
  /** Pauses and updates that somebody waits for. */
  #underWay = 0

  constructor(parts: {
    readonly proxy: Pick<Proxy, 'engineStatus' | 'pauseEngine' | 'resumeEngine' | 'updateWeights'>
    readonly shelving: Pick<Shelving, 'shelveForUpdate' | 'resumeFromUpdate'>
    /** An agent that was to be shelved goes on. */
    readonly onMissed: (rolloutId: Id, why: unknown) => void
  }) {
    this.#proxy = parts.proxy
    this.#shelving = parts.shelving
    this.#onMissed = parts.onMissed
  }

  /** Throws what the proxy throws. */
  pauseEngine(order: PauseOrder): Promise<PauseOutcome & Shelved> {
    return this.#shelvedWhile('the engine is paused', () => this.#proxy.pauseEngine(order))
  }

  /** Likewise. */
  updateWeights(order: WeightsOrder): Promise<WeightsOutcome & Shelved> {
    return this.#shelvedWhile(`new weights: ${order.version}`, () => this.#proxy.updateWeights(order))
  }

  async resumeEngine(): Promise<void> {
    try {
      await this.#proxy.resumeEngine()
    } finally {
      this.#goOn()
    }
  }

  async #shelvedWhile<T>(why: string, act: () => Promise<T>): Promise<T & Shelved> {
    this.#underWay += 1
    try {
      // In a pause they stand still already.
      const isPaused = this.#proxy.engineStatus().paused !== null
      const shelved = isPaused ? 0 : await this.#shelving.shelveForUpdate(why, this.#onMissed)
      return { ...(await act()), shelved }
    } finally {
      this.#underWay -= 1
      this.#goOn()
    }
  }

  #goOn(): void {
    if (this.#underWay === 0 && this.#proxy.engineStatus().paused === null) this.#shelving.resumeFromUpdate()
  }
}
