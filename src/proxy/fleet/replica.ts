import { InFlightSet } from '../../core/index.ts'
import type { EngineAdapter } from '../engines/contract.ts'
import { shownUrl } from '../engines/http.ts'
import type { KnownEngine } from '../engines/known-engine.ts'
import { type EngineLine, engineLine } from '../http/engine-line/index.ts'
import { ReplicaAdapters, type TellAdapter } from './adapters.ts'
import type { FleetAsk } from './ask.ts'
import type { FleetLimits, ReplicaStatus } from './contract.ts'
import { KnownWeights } from './known-weights.ts'
import { versionUnder } from '../upstream.ts'

/** A request that samples, as the replica that it runs on and the pause know it. */
export interface Generation {
  /** When it was made to wait or frozen; monotonic, set and read by the pause. */
  heldSince: number | null
  /** Its KV cache was dropped at a weight update and computed anew. */
  recomputed: boolean
  readonly ask: FleetAsk
  /** Where it runs. */
  readonly replica: Replica | null
  /** A weight update ends it; the sink's owner knows that the next end is not the engine's own. */
  interrupt(): void
  /** For an engine that did not end an interrupted request by itself. */
  cut(): void
  /** The harness's call is not forgotten. */
  remind(): void
}

/** What a {@link Replica} is made of. */
export interface ReplicaParts {
  readonly engine: EngineAdapter
  readonly known: KnownEngine
  readonly maxInFlight: number
  readonly limits: FleetLimits
  readonly tellAdapter: TellAdapter
}

/** One engine process behind the proxy: its connections, what runs on it, and how it has behaved. */
export class Replica {
  readonly engine: EngineAdapter
  readonly weights: KnownWeights
  readonly adapters: ReplicaAdapters
  readonly known: KnownEngine
  /** Where requests go. */
  readonly line: EngineLine
  /** Generations that run on it. */
  readonly running = new InFlightSet<Generation>()
  state: Exclude<ReplicaStatus['state'], 'draining'> = 'serving'
  /** It was taken out: what runs on it ends there, and nothing new comes. */
  leaving = false
  /** Sessions whose KV cache is expected here; counted by `Affinity`. */
  sessions = 0
  requests = 0
  failures = 0
  retries = 0
  ejections = 0
  lastError: string | null = null
  /** A prefix cache of older weights may be there, and requests carry no salt. */
  staleCache = false
  /** An ejected replica is looked at again from then on, monotonic. */
  private returnAt = 0
  private failuresInRow = 0
  private ejectionsInRow = 0
  private readonly limits: FleetLimits

  constructor({ engine, known, maxInFlight, limits, tellAdapter }: ReplicaParts) {
    this.engine = engine
    this.known = known
    this.limits = limits
    this.weights = new KnownWeights(engine.control ?? null)
    this.adapters = new ReplicaAdapters(engine, this.weights, tellAdapter)
    const { url, apiKey, dispatcher } = engine
    this.line = engineLine(url, {
      apiKey,
      dispatcher,
      connections: maxInFlight,
      lost: () => known.suspect({ gone: false }),
    })
  }

  get inFlight(): number {
    return this.running.size
  }

  get url(): string {
    return shownUrl(this.engine.url)
  }

  succeeded(): void {
    this.failuresInRow = 0
    this.ejectionsInRow = 0
  }

  /** True when that was one failure too many. `gone`: nobody listens, which needs no second try. */
  failed(why: string, gone: boolean): boolean {
    this.failures += 1
    this.failuresInRow += 1
    this.lastError = why
    return gone || this.failuresInRow >= this.limits.ejectAfter
  }

  eject(now: number): void {
    const pause = Math.min(this.limits.maxEjectMs, this.limits.ejectMs * 2 ** this.ejectionsInRow)
    this.returnAt = now + pause
    this.ejectionsInRow += 1
    if (this.state !== 'ejected') this.ejections += 1
    this.state = 'ejected'
    this.forget()
    this.staleCache = false
  }

  /** It may come back as another process with other weights, no adapters and an empty cache. */
  forget(): void {
    this.weights.forget()
    this.adapters.forget()
  }

  /** What samples for a new call, as it is called. */
  get weightVersion(): string | null {
    return versionUnder(this.adapters.current, this.weights.version)
  }

  mayReturn(now: number): boolean {
    return this.state !== 'ejected' || now >= this.returnAt
  }

  status(): ReplicaStatus {
    const state = this.leaving ? ('draining' as const) : this.state
    const { url, inFlight, requests, failures, retries, ejections, sessions, lastError } = this
    const { connections, pending } = this.line.stats()
    const { weightVersion } = this
    return {
      url,
      state,
      inFlight,
      connections,
      pending,
      requests,
      failures,
      retries,
      ejections,
      sessions,
      weightVersion,
      adapter: this.adapters.current?.name ?? null,
      lastError,
    }
  }

  close(): Promise<void> {
    return this.line.close()
  }
}
