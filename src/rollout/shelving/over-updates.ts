import { type Id, PaddockError } from '../../core/index.ts'
import type {
  LiveWeights,
  PauseElsewhere,
  PauseOrder,
  PauseOutcome,
  Proxy,
  WeightsOrder,
  WeightsOutcome,
} from '../../proxy/index.ts'
import { nobodyAnswered, type NodesAnswered, type NodeWeights } from '../nodes/index.ts'
import type { Shelving } from './shelving.ts'

/** How many agents stand still for an update. */
export interface Shelved {
  readonly shelved: number
}

/** And how nodes have answered. */
export interface OverNodes {
  readonly nodes: NodesAnswered
}

type EngineOf = Pick<
  Proxy,
  'engineStatus' | 'pauseEngine' | 'resumeEngine' | 'updateWeights' | 'believeWeights' | 'dropOldAdapters'
>

/**
 * The engine as those ask it who move weights. Agents of runs that say so (`AtWeightUpdate`) are shelved before generation is
 * paused, and go on when it does, whoever lets it. One that cannot be made to stand still goes on as the mode of the pause says.
 * Nodes do the same at the same time: weights change when all of them have paused, and nobody goes on before all know the new ones.
 */
export class EngineOverUpdates {
  readonly #proxy: EngineOf
  readonly #shelving: Pick<Shelving, 'shelveForUpdate' | 'resumeFromUpdate'>
  readonly #nodes: Pick<NodeWeights, 'pause' | 'update' | 'resume' | 'believe'>
  readonly #onMissed: (rolloutId: Id, why: unknown) => void
  /** Pauses and updates that somebody waits for. */
  #underWay = 0
  #isUpdating = false

  constructor(parts: {
    readonly proxy: EngineOf
    readonly shelving: Pick<Shelving, 'shelveForUpdate' | 'resumeFromUpdate'>
    readonly nodes: Pick<NodeWeights, 'pause' | 'update' | 'resume' | 'believe'>
    /** An agent that was to be shelved goes on. */
    readonly onMissed: (rolloutId: Id, why: unknown) => void
  }) {
    this.#proxy = parts.proxy
    this.#shelving = parts.shelving
    this.#nodes = parts.nodes
    this.#onMissed = parts.onMissed
  }

  /** Throws what the proxy throws, and `PAUSE_TIMED_OUT` where a node's generations did not end in time. `elsewhere`: see `Proxy.pauseEngine`. */
  pauseEngine(order: PauseOrder, elsewhere?: PauseElsewhere): Promise<PauseOutcome & Shelved & OverNodes> {
    return this.#shelvedWhile('the engine is paused', () => this.#pause(order, elsewhere))
  }

  /** Likewise; and `WEIGHTS_REFUSED`. Inside a pause the pause stays. For an adapter nothing is paused and nobody shelved. */
  updateWeights(order: WeightsOrder): Promise<WeightsOutcome & Shelved & OverNodes> {
    if (order.adapter !== undefined) return this.#switchAdapter(order)
    return this.#shelvedWhile(`new weights: ${order.version}`, async () => {
      if (this.#isUpdating) throw new PaddockError('ENGINE_PAUSED', 'Another weight update is going on.')
      this.#isUpdating = true
      const isOwn = this.#proxy.engineStatus().paused === null
      try {
        const paused = isOwn ? await this.#pause(order) : null
        const updated = await this.#proxy.updateWeights(order)
        const nodes = await this.#nodes.update(updated, order.timeoutMs)
        this.#proxy.dropOldAdapters()
        return paused === null
          ? { ...updated, nodes }
          : { ...updated, ...paused, nodes: { ...paused.nodes, passed: [...paused.nodes.passed, ...nodes.passed] } }
      } finally {
        this.#isUpdating = false
        if (isOwn) await this.#resume()
      }
    })
  }

  async resumeEngine(): Promise<void> {
    try {
      await this.#resume()
    } finally {
      this.#goOn()
    }
  }

  /** Takes somebody's word for the weights that there are. */
  async believeWeights(live: LiveWeights): Promise<void> {
    await this.#proxy.believeWeights(live)
    this.#nodes.believe(live)
  }

  /** Old adapters go when nodes name the new one too. */
  async #switchAdapter(order: WeightsOrder): Promise<WeightsOutcome & Shelved & OverNodes> {
    const updated = await this.#proxy.updateWeights(order)
    const nodes = await this.#nodes.update(updated, order.timeoutMs)
    this.#proxy.dropOldAdapters()
    return { ...updated, shelved: 0, nodes }
  }

  /** Engines are frozen first, so that nodes know whether they are; else all are waited for at once. */
  async #pause(order: PauseOrder, elsewhere?: PauseElsewhere): Promise<PauseOutcome & OverNodes> {
    if (this.#proxy.engineStatus().paused !== null)
      return { ...(await this.#proxy.pauseEngine(order)), nodes: nobodyAnswered }
    const here = this.#proxy.pauseEngine(order, elsewhere)
    const there = order.mode === 'keep' ? null : this.#nodes.pause({ ...order, frozen: false })
    there?.catch(() => undefined)
    try {
      const outcome = await here
      const nodes = await (there ?? this.#nodes.pause({ ...order, frozen: this.#proxy.engineStatus().frozen }))
      return { ...outcome, nodes }
    } catch (error) {
      if (this.#proxy.engineStatus().paused !== null) await this.#resume()
      else this.#nodes.resume()
      throw error
    }
  }

  async #resume(): Promise<void> {
    try {
      await this.#proxy.resumeEngine()
    } finally {
      this.#nodes.resume()
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
