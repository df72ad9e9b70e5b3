import { PaddockError } from '../../core/index.ts'
import type { FleetEvent, ReplicaWeights, WeightsElsewhere, WeightsOrder, WeightsOutcome } from './contract.ts'
import type { Pause } from './pause.ts'
import type { Replica } from './replica.ts'

interface UpdateParts {
  readonly replicas: readonly Replica[]
  readonly pauses: Pause
  readonly emit: (event: FleetEvent) => void
}

/**
 * New weights for all replicas: pause, post the trainer's orders, name the version, forget the prefix cache of the old
 * weights, resume. Inside a pause of the trainer's own the pause stays.
 */
export class WeightUpdates {
  /** The version of the last update, null before the first. */
  version: string | null = null
  count = 0
  private readonly parts: UpdateParts
  private running = false

  constructor(parts: UpdateParts) {
    this.parts = parts
  }

  /**
   * Throws what {@link Pause.pause} throws, `ENGINE_PAUSED` while another update runs, `WEIGHTS_REFUSED` where a replica refuses an order or says
   * another version afterwards; generation goes on then, with whatever weights the replicas have.
   */
  async update(order: WeightsOrder): Promise<WeightsOutcome> {
    const { pauses, emit } = this.parts
    if (this.running) throw new PaddockError('ENGINE_PAUSED', 'Another weight update is going on.')
    this.running = true
    const own = pauses.mode === null
    try {
      const paused = own
        ? await pauses.pause(order)
        : { mode: pauses.mode ?? order.mode, interrupted: 0, drained: 0, kept: 0, durationMs: 0 }
      const reached = this.parts.replicas.filter(
        ({ state, leaving }) => state !== 'ejected' && state !== 'foreign' && !leaving,
      )
      await Promise.all(reached.map((replica) => this.bring(replica, order)))
      this.version = order.version
      this.count += 1
      for (const replica of reached) if (replica.state === 'stale') replica.state = 'serving'
      emit({ what: 'weights', replica: null, detail: order.version })
      return {
        ...paused,
        version: order.version,
        replicas: this.parts.replicas.map(weightsOf),
        cacheIsolated: reached.every(({ staleCache }) => !staleCache),
      }
    } finally {
      this.running = false
      if (own) await pauses.resume()
    }
  }

  /** What another process brought to these replicas: nothing is asked of them but which weights they have. */
  async follow({ version, cacheIsolated }: WeightsElsewhere): Promise<void> {
    await Promise.all(
      this.parts.replicas.map(async (replica) => {
        const said = await replica.weights.read()
        replica.weights.note(replica.weights.told && said !== null ? said : version)
        replica.staleCache = !cacheIsolated && (replica.engine.control?.saltMember ?? null) === null
        if (replica.state === 'stale' && replica.weights.version === version) replica.state = 'serving'
      }),
    )
    this.version = version
    this.count += 1
    this.parts.emit({ what: 'weights', replica: null, detail: version })
  }

  private async bring(replica: Replica, { version, requests, mode, cache }: WeightsOrder): Promise<void> {
    const { control } = replica.engine
    if (control === undefined) {
      if (requests.length > 0) refuse(replica, 'takes no orders: its kind has no weight routes')
      replica.weights.note(version)
      replica.staleCache = true
      return
    }
    for (const request of requests) {
      const { status, text } = await control.order(request)
      if (status >= 300) refuse(replica, `answers ${request.path} with ${status}: ${text.slice(0, 200)}`)
    }
    // A trainer may have named them already; a server without the route takes our word.
    const named = await replica.weights.read()
    if (named !== version && (await control.nameWeights(version))) {
      const said = await replica.weights.read()
      if (said !== null && said !== version) refuse(replica, `says that its weights are ${said}, not ${version}`)
    }
    replica.weights.note(version)
    const cleared = mode === 'keep' && cache === 'keep' ? false : await control.clearCache().catch(() => false)
    replica.staleCache = !cleared && control.saltMember === null
  }
}

/** What is known of a replica's weights. */
export function weightsOf({ url, weights }: Replica): ReplicaWeights {
  return { url, weightVersion: weights.version, told: weights.told }
}

function refuse(replica: Replica, what: string): never {
  throw new PaddockError('WEIGHTS_REFUSED', `The replica ${replica.url} ${what}.`, { data: { replica: replica.url } })
}
