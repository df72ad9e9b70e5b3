import type { Clock, Digest, EngineFingerprint } from '../../core/index.ts'
import type { EngineAdapter } from '../engines/contract.ts'
import { shownUrl } from '../engines/http.ts'
import { KnownEngine } from '../engines/known-engine.ts'
import type { Upstream, UpstreamIds, UpstreamRequest, UpstreamSink, UpstreamTerms } from '../upstream.ts'
import { Affinity } from './affinity.ts'
import { type AdapterVersion, whyLacking } from './adapters.ts'
import type {
  FleetEvent,
  FleetLimits,
  FleetStatus,
  LiveWeights,
  PauseElsewhere,
  PauseOrder,
  PauseOutcome,
  ReplicaWeights,
  WeightsElsewhere,
  WeightsOrder,
  WeightsOutcome,
} from './contract.ts'
import { healthOf } from './health.ts'
import { Pause } from './pause.ts'
import { Replica } from './replica.ts'
import { FleetRequest, type RequestSurroundings } from './request.ts'
import { choose } from './routing.ts'
import { WeightUpdates, weightsOf } from './updates.ts'

/** What a fleet is made of. */
export interface FleetParts {
  /** One adapter per replica; the same kind, the same model. None: they come later. */
  readonly engines: readonly EngineAdapter[]
  readonly maxInFlight: number
  readonly limits: FleetLimits
  readonly clock: Clock
  readonly emit: (event: FleetEvent) => void
  /** A call was held up by a pause for this long. */
  readonly waited: (ids: UpstreamIds, waitedMs: number) => void
  /** Stores a fingerprint; null: nobody wants to know what the engines are. */
  readonly put: ((fingerprint: EngineFingerprint) => Promise<Digest>) | null
  /** An engine was asked anew what it is; `changed`: it is another one. Does not reject. */
  readonly renewed: (how: { readonly replica: string; readonly changed: boolean }) => Promise<void>
}

const noTerms: UpstreamTerms = {}

/**
 * The replicas of one engine as one upstream: sessions stay where their KV cache is, failing replicas get no calls until they
 * are well again, and generation can be paused for new weights.
 */
export class Fleet implements Upstream, RequestSurroundings {
  private readonly list: Replica[]
  private readonly parts: FleetParts
  private readonly affinity: Affinity
  private readonly pauses: Pause
  private readonly updates: WeightUpdates
  private readonly looking = new Set<Replica>()
  private lookAt = 0
  /** What the first replica that was asked serves; another model must not take its calls. */
  private model: string | null = null

  constructor(parts: FleetParts) {
    this.parts = parts
    this.list = parts.engines.map((engine) => this.replicaOf(engine))
    this.affinity = new Affinity(this.replicas)
    this.pauses = new Pause({ replicas: this.replicas, clock: parts.clock, emit: parts.emit, waited: parts.waited })
    this.updates = new WeightUpdates({ replicas: this.replicas, pauses: this.pauses, emit: parts.emit })
    this.lookAt = parts.clock.monotonic() + parts.limits.healthMs
  }

  get replicas(): readonly Replica[] {
    return this.list
  }

  /**
   * From now on the replicas are these adapters, by object: new ones take calls, those that are not named get no more, and leave when what runs on them
   * has ended. `live`: the weights that there are; a new one that says it has others is `stale` until it gets them, and one without their
   * adapter gets that.
   */
  async set(engines: readonly EngineAdapter[], live: LiveWeights | null): Promise<void> {
    this.updates.begin(live)
    const there = new Set(this.list.map(({ engine }) => engine))
    const added = engines.filter((engine) => !there.has(engine)).map((engine) => this.replicaOf(engine))
    await Promise.all(added.map(async (replica) => (replica.state = (await this.updates.join(replica)) ?? 'serving')))
    for (const replica of added) {
      this.list.push(replica)
      this.parts.emit({ what: 'added', replica: replica.url, detail: replica.state })
    }
    for (const replica of this.list.filter(({ engine }) => !engines.includes(engine))) {
      replica.leaving = true
      this.maybeDrop(replica)
    }
  }

  send(
    path: string,
    body: Buffer,
    ids: UpstreamIds,
    sink: UpstreamSink,
    terms: UpstreamTerms = noTerms,
  ): UpstreamRequest {
    const questions = this.replicas[0]?.engine.control?.questions
    const request = new FleetRequest({ path, ids, sink, terms, generates: questions?.has(path) !== true }, body, this)
    request.enter()
    return request
  }

  /** An engine that may be asked something now. */
  engineNow(): EngineAdapter | undefined {
    return (choose(this.candidates(new Set()), null, 1) ?? this.replicas[0])?.engine
  }

  /** The engine that the session's next call will probably be answered by, as it is known. */
  knownFor(sessionId: string): KnownEngine | null {
    const home = this.affinity.homeOf(sessionId)
    return (home ?? choose(this.candidates(new Set()), null, 1) ?? this.replicas[0])?.known ?? null
  }

  /** A session that goes on from a call of another one starts where that call ran. */
  fork(sessionId: string, callId: string): void {
    this.affinity.fork(sessionId, callId)
  }

  /** See {@link Pause.holdSession}. */
  holdSession(sessionId: string): Promise<number> {
    return this.pauses.holdSession(sessionId)
  }

  /** See {@link Pause.canHold}. */
  canHoldSession(sessionId: string): boolean {
    return this.pauses.canHold(sessionId)
  }

  releaseSession(sessionId: string): void {
    this.pauses.releaseSession(sessionId)
  }

  forget(sessionId: string): void {
    this.pauses.releaseSession(sessionId)
    this.affinity.forget(sessionId)
  }

  /** Called about once a second. */
  tick(now: number): void {
    this.pauses.remind()
    if (now < this.lookAt) return
    this.lookAt = now + this.parts.limits.healthMs
    for (const replica of this.replicas) void this.look(replica)
  }

  /** Looks at every replica now. */
  async lookAtAll(): Promise<void> {
    await Promise.all(this.replicas.map((replica) => this.look(replica)))
  }

  /** Asks every replica for its health now; null: it answers. */
  async health(): Promise<readonly { readonly url: string; readonly ill: string | null }[]> {
    return Promise.all(this.replicas.map(async (replica) => ({ url: replica.url, ill: await healthOf(replica) })))
  }

  pause(order: PauseOrder, elsewhere: PauseElsewhere | null = null): Promise<PauseOutcome> {
    return this.pauses.pause(order, elsewhere)
  }

  async resume(): Promise<void> {
    await this.pauses.resume()
  }

  update(order: WeightsOrder): Promise<WeightsOutcome> {
    return this.updates.update(order).finally(() => {
      for (const { known } of this.replicas) known.suspect({ gone: false })
    })
  }

  follow(weights: WeightsElsewhere): Promise<void> {
    return this.updates.follow(weights).finally(() => {
      for (const { known } of this.replicas) known.suspect({ gone: false })
    })
  }

  /** Asks each replica which weights it has. */
  async weights(): Promise<readonly ReplicaWeights[]> {
    await Promise.all(this.replicas.map((replica) => this.ask(replica)))
    return this.replicas.map(weightsOf)
  }

  /** Takes somebody's word for the weights of replicas that do not name them themselves; an adapter they get where they are without it. */
  async believe(live: LiveWeights): Promise<void> {
    await this.weights()
    if (live.adapter !== undefined) return this.updates.expect({ ...live, adapter: live.adapter })
    for (const { weights } of this.replicas) if (!weights.told) weights.note(live.version)
  }

  /** See {@link WeightUpdates.dropOldAdapters}. */
  dropOldAdapters(): void {
    this.updates.dropOldAdapters()
  }

  status(): FleetStatus {
    return {
      replicas: this.replicas.map((replica) => replica.status()),
      paused: this.pauses.mode,
      frozen: this.pauses.isFrozen,
      waiting: this.pauses.waiting,
      weightVersion: this.updates.version,
      adapter: this.updates.adapter?.name ?? null,
      weightUpdates: this.updates.count,
      resubmitted: this.pauses.interruptedTotal,
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.replicas.map((replica) => replica.close()))
  }

  // ------------------------------------------------------------------------------------- what requests ask of it

  choose(ids: UpstreamIds, without: ReadonlySet<Replica>): Replica | null {
    const [only, second] = this.replicas
    if (only !== undefined && second === undefined)
      return without.has(only) || only.state === 'foreign' || only.leaving ? null : only
    const candidates = this.candidates(without)
    const home = this.affinity.homeOf(ids.sessionId)
    return candidates.length === 1 ? (candidates[0] ?? null) : choose(candidates, home, this.parts.limits.overload)
  }

  waitForResume(request: FleetRequest): boolean {
    return this.pauses.hold(request)
  }

  began(request: FleetRequest, replica: Replica): void {
    if (!request.ask.generates) return
    replica.running.add(request)
    this.affinity.settle(request.ask.ids.sessionId, request.ask.ids.callId, replica)
  }

  ended(request: FleetRequest, replica: Replica | null): void {
    this.pauses.left(request)
    replica?.running.delete(request)
    if (replica?.leaving === true) this.maybeDrop(replica)
  }

  succeeded(replica: Replica): void {
    replica.succeeded()
  }

  failed(replica: Replica, why: string, gone: boolean): void {
    if (replica.failed(why, gone)) this.eject(replica, why)
  }

  retried(replica: Replica, why: string): void {
    this.parts.emit({ what: 'retried', replica: replica.url, detail: why })
  }

  adapter(): AdapterVersion | null {
    return this.updates.adapter
  }

  async equip(replica: Replica, adapter: AdapterVersion): Promise<void> {
    replica.adapters.use(await replica.adapters.bring(adapter, this.updates.base))
  }

  lacks(replica: Replica, why: string): void {
    replica.lastError = why
    if (replica.state === 'serving') this.setState(replica, 'stale', why)
  }

  salted(replica: Replica): boolean {
    return replica.weights.changed || this.updates.version !== null
  }

  // ------------------------------------------------------------------------------------------------ inner works

  /** Which weights it has; the adapter that is live it gets again where it has lost it. */
  private async ask(replica: Replica): Promise<void> {
    await replica.weights.read()
    const { adapter } = this.updates
    const { current } = replica.adapters
    if (adapter === null || (current?.of === adapter && (await replica.adapters.stillHas(current)))) return
    await this.equip(replica, adapter).catch((cause: unknown) => this.lacks(replica, whyLacking(cause)))
  }

  private replicaOf(engine: EngineAdapter): Replica {
    const { maxInFlight, limits, put } = this.parts
    const known = new KnownEngine({ engine, put, renewed: (how) => this.renewed(engine, how) })
    const replica = shownUrl(engine.url)
    const tellAdapter = (detail: string): void => this.parts.emit({ what: 'adapter', replica, detail })
    return new Replica({ engine, known, maxInFlight, limits, tellAdapter })
  }

  private maybeDrop(replica: Replica): void {
    const at = this.list.indexOf(replica)
    if (at < 0 || replica.running.size > 0) return
    this.list.splice(at, 1)
    this.affinity.leave(replica)
    this.parts.emit({ what: 'removed', replica: replica.url, detail: 'nothing runs on it' })
    void replica.close()
  }

  /** Those that serve; where none does, any that may still answer: a call is never refused without a try. */
  private candidates(without: ReadonlySet<Replica>): Replica[] {
    const left = this.replicas.filter(
      (replica) => !without.has(replica) && replica.state !== 'foreign' && !replica.leaving,
    )
    const serving = left.filter(({ state }) => state === 'serving')
    if (serving.length > 0) return serving
    const stale = left.filter(({ state }) => state === 'stale')
    return stale.length > 0 ? stale : left
  }

  /** The last one that serves is never ejected: a bad answer is better than none, and it may be well again. */
  private eject(replica: Replica, why: string): void {
    const others = this.replicas.some((other) => other !== replica && other.state === 'serving' && !other.leaving)
    if (!others) {
      // What is known of its weights may be wrong all the same: a process that is gone comes back as another one.
      replica.forget()
      return
    }
    const before = replica.state
    replica.eject(this.parts.clock.monotonic())
    if (before !== 'ejected') this.parts.emit({ what: 'ejected', replica: replica.url, detail: why })
  }

  private async look(replica: Replica): Promise<void> {
    if (replica.leaving || this.looking.has(replica) || !replica.mayReturn(this.parts.clock.monotonic())) return
    this.looking.add(replica)
    try {
      const ill = await healthOf(replica)
      if (ill !== null) {
        replica.known.suspect({ gone: true })
        if (replica.failed(ill, false) || replica.state === 'ejected') this.eject(replica, ill)
        return
      }
      if (replica.state === 'serving') {
        void replica.weights.read()
        void replica.known.learn()
        return
      }
      await this.readmit(replica)
    } finally {
      this.looking.delete(replica)
    }
  }

  private async readmit(replica: Replica): Promise<void> {
    const { base, adapter } = this.updates
    const now = await replica.weights.read()
    if (!(await this.servesTheModel(replica))) return this.setState(replica, 'foreign', 'it serves another model')
    if (base !== null && now !== null && now !== base) {
      return this.setState(replica, 'stale', `it has weights ${now}, the others ${base}`)
    }
    if (adapter !== null) {
      try {
        await this.equip(replica, adapter)
      } catch (cause) {
        return this.setState(replica, 'stale', whyLacking(cause))
      }
    }
    replica.succeeded()
    this.setState(replica, 'serving', 'its health route answers')
  }

  private renewed(engine: EngineAdapter, difference: string | null): Promise<void> {
    const replica = shownUrl(engine.url)
    if (difference !== null) this.parts.emit({ what: 'changed', replica, detail: difference })
    return this.parts.renewed({ replica, changed: difference !== null })
  }

  private async servesTheModel(replica: Replica): Promise<boolean> {
    if (this.replicas.length === 1) return true
    try {
      this.model ??= (await this.engineNow()?.fingerprint())?.model ?? null
      const { model } = await replica.engine.fingerprint()
      return this.model === null || model === this.model
    } catch {
      // It went away again; the next look finds out.
      return true
    }
  }

  private setState(replica: Replica, state: 'serving' | 'stale' | 'foreign', detail: string): void {
    if (replica.state === state) return
    replica.state = state
    const what = state === 'serving' ? 'readmitted' : state
    this.parts.emit({ what, replica: replica.url, detail })
  }
}
