import { PaddockError } from '../../core/index.ts'
import type { Adapter } from '../engines/adapters.ts'
import { type AdapterVersion, type HeldAdapter, whyLacking } from './adapters.ts'
import type {
  FleetEvent,
  LiveWeights,
  PauseOutcome,
  ReplicaWeights,
  WeightsElsewhere,
  WeightsOrder,
  WeightsOutcome,
} from './contract.ts'
import type { Pause } from './pause.ts'
import type { Replica } from './replica.ts'

interface UpdateParts {
  readonly replicas: readonly Replica[]
  readonly pauses: Pause
  readonly emit: (event: FleetEvent) => void
}

/**
 * New weights for all replicas. The server's own: pause, post the trainer's orders, name the version, forget the prefix cache of the old
 * weights, resume; inside a pause of the trainer's own the pause stays. A LoRA adapter: each replica gets it while generation goes on, and
 * new generations name it.
 */
export class WeightUpdates {
  /** The version of the last update, null before the first. */
  version: string | null = null
  /** The adapter that it is; null: none. */
  adapter: AdapterVersion | null = null
  /** What the servers call their own weights, as far as somebody has said so or adapters were put on them. */
  base: string | null = null
  count = 0
  /** The adapter that each version was, null: none. */
  private readonly known = new Map<string, string | null>()
  private readonly parts: UpdateParts
  private running = false

  constructor(parts: UpdateParts) {
    this.parts = parts
  }

  /**
   * Throws what {@link Pause.pause} throws, `ENGINE_PAUSED` while another update runs, `WEIGHTS_REFUSED` where a replica refuses an order or says
   * another version afterwards; generation goes on then, with whatever weights the replicas have. Of an adapter: where no replica takes it, and
   * nothing has changed then. `STORE_CONFLICT` for a version that was another adapter.
   */
  async update(order: WeightsOrder): Promise<WeightsOutcome> {
    if (this.running) throw new PaddockError('ENGINE_PAUSED', 'Another weight update is going on.')
    this.requireSameAdapter(order)
    this.running = true
    try {
      return await (order.adapter === undefined ? this.move(order) : this.switch(order, order.adapter))
    } finally {
      this.running = false
    }
  }

  /** What another process brought to these replicas: nothing is asked of them but which weights and adapters they have. */
  async follow({ version, adapter, cacheIsolated }: WeightsElsewhere): Promise<void> {
    if (adapter === undefined) {
      await Promise.all(
        this.parts.replicas.map(async (replica) => {
          const said = await replica.weights.read()
          replica.weights.note(replica.weights.told && said !== null ? said : version)
          replica.staleCache = !cacheIsolated && (replica.engine.control?.saltMember ?? null) === null
          if (replica.state === 'stale' && replica.weights.version === version) replica.state = 'serving'
        }),
      )
      this.nameOwn(version)
    } else await this.expect({ version, adapter })
    this.count += 1
    this.parts.emit({ what: 'weights', replica: null, detail: version })
  }

  /** An adapter that is live already, as an earlier process or another one made it: replicas that have it not get it, or no calls. */
  async expect({ version, adapter }: LiveWeights & { readonly adapter: Adapter }): Promise<void> {
    const next = { ...adapter, version }
    const { held } = await this.reach(next)
    this.take(next, held)
  }

  /** Of a first list of replicas: the weights that there are. */
  begin(live: LiveWeights | null): void {
    if (live === null || this.version !== null) return
    this.version = live.version
    if (live.adapter === undefined) this.base = live.version
    else this.adapter = { ...live.adapter, version: live.version }
  }

  /** A replica that comes to the others; why it gets no calls yet, null: it does. */
  async join(replica: Replica): Promise<'stale' | null> {
    const { base, adapter } = this
    const now = await replica.weights.read()
    if (adapter === null && base !== null && now === null) replica.weights.note(base)
    if (base !== null && now !== null && now !== base) return 'stale'
    if (adapter === null) return null
    try {
      const held = await replica.adapters.bring(adapter, base)
      this.base ??= held.base
      replica.adapters.use(held)
      return null
    } catch {
      return 'stale'
    }
  }

  /** Old adapters are unloaded as soon as nothing runs under them: nobody names them any more. */
  dropOldAdapters(): void {
    for (const { adapters } of this.parts.replicas) adapters.drop()
  }

  /** The server's own weights. */
  private async move(order: WeightsOrder): Promise<WeightsOutcome> {
    const { pauses, emit } = this.parts
    const own = pauses.mode === null
    try {
      const paused = own ? await pauses.pause(order) : this.nothingPaused(order)
      const reached = this.reachable()
      await Promise.all(reached.map((replica) => this.bring(replica, order)))
      this.nameOwn(order.version)
      this.count += 1
      for (const replica of reached) if (replica.state === 'stale') replica.state = 'serving'
      emit({ what: 'weights', replica: null, detail: order.version })
      return {
        ...paused,
        version: order.version,
        replicas: this.parts.replicas.map(weightsOf),
        out: [],
        cacheIsolated: reached.every(({ staleCache }) => !staleCache),
      }
    } finally {
      if (own) await pauses.resume()
    }
  }

  private async switch(order: WeightsOrder, adapter: Adapter): Promise<WeightsOutcome> {
    const { emit, replicas } = this.parts
    const { version } = order
    // One object for as long as it is live, also where it is said again.
    const { adapter: live } = this
    const isLive = live?.name === adapter.name && live.path === adapter.path && live.version === version
    const next = isLive ? live : { ...adapter, version }
    const { held, out } = await this.reach(next)
    if (held.size === 0) {
      const why = out.map(({ why: said }) => said).join(' ')
      throw new PaddockError('WEIGHTS_REFUSED', why === '' ? 'No replica of the engine takes calls.' : why)
    }
    this.take(next, held)
    this.count += 1
    emit({ what: 'weights', replica: null, detail: version })
    return {
      ...this.nothingPaused(order),
      version,
      adapter,
      replicas: replicas.map(weightsOf),
      out: [...out, ...this.unreachable()],
      // Engines keep the caches of adapters apart, and requests carry the version as salt besides.
      cacheIsolated: true,
    }
  }

  /** Gives it to each replica that answers; nothing names it yet. */
  private async reach(next: AdapterVersion): Promise<{
    readonly held: ReadonlyMap<Replica, HeldAdapter>
    readonly out: WeightsOutcome['out']
  }> {
    const held = new Map<Replica, HeldAdapter>()
    const out: { readonly url: string; readonly why: string }[] = []
    const bring = async (replica: Replica): Promise<void> => {
      try {
        const got = await replica.adapters.bring(next, this.base)
        this.base ??= got.base
        held.set(replica, got)
      } catch (cause) {
        out.push({ url: replica.url, why: whyLacking(cause) })
      }
    }
    // The first says what all others' own weights are called.
    const [first, ...others] = this.reachable()
    if (first !== undefined) await bring(first)
    await Promise.all(others.map(bring))
    return { held, out }
  }

  /** Tokens say their version: it cannot be of two adapters. */
  private requireSameAdapter({ version, adapter }: WeightsOrder): void {
    const before = this.known.get(version)
    const now = adapter?.name ?? null
    if (before === undefined || before === now) return
    const named = (name: string | null): string => (name === null ? "the server's own" : `the adapter ${name}`)
    throw new PaddockError('STORE_CONFLICT', `weights ${version} were ${named(before)}, and are not ${named(now)}`, {
      fix: 'Give these weights another version.',
    })
  }

  private take(next: AdapterVersion, held: ReadonlyMap<Replica, HeldAdapter>): void {
    this.known.set(next.version, next.name)
    this.version = next.version
    this.adapter = next
    for (const replica of this.parts.replicas) {
      const got = held.get(replica)
      replica.adapters.use(got ?? null)
      if (got !== undefined) {
        if (replica.state === 'stale') replica.state = 'serving'
        continue
      }
      if (replica.state !== 'serving') continue
      replica.state = 'stale'
      this.parts.emit({ what: 'stale', replica: replica.url, detail: `it has no adapter ${next.name}` })
    }
  }

  private nameOwn(version: string): void {
    this.known.set(version, null)
    this.version = version
    this.base = version
    this.adapter = null
    for (const { adapters } of this.parts.replicas) adapters.use(null)
  }

  private reachable(): readonly Replica[] {
    return this.parts.replicas.filter(({ state, leaving }) => state !== 'ejected' && state !== 'foreign' && !leaving)
  }

  private unreachable(): WeightsOutcome['out'] {
    const { replicas } = this.parts
    return replicas
      .filter(({ state }) => state === 'ejected' || state === 'foreign')
      .map(({ url, state, lastError }) => ({ url, why: `it is ${state}${lastError === null ? '' : `: ${lastError}`}` }))
  }

  private nothingPaused({ mode }: WeightsOrder): PauseOutcome {
    return { mode: this.parts.pauses.mode ?? mode, interrupted: 0, drained: 0, kept: 0, durationMs: 0 }
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
export function weightsOf({ url, weights, weightVersion, adapters }: Replica): ReplicaWeights {
  const adapter = adapters.current?.name ?? null
  // Of an adapter it was asked for its list.
  return { url, weightVersion, told: weights.told || adapter !== null, adapter }
}

function refuse(replica: Replica, what: string): never {
  throw new PaddockError('WEIGHTS_REFUSED', `The replica ${replica.url} ${what}.`, { data: { replica: replica.url } })
}
