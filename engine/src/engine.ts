import { Adapters } from './adapters.ts'
import { FaultSwitch } from './faults/fault-switch.ts'
import { PauseGate } from './generation/gate.ts'
import { Journal } from './journal.ts'
import { ScriptBook } from './policy/script-book.ts'
import { loadProfile } from './profiles.ts'
import type { EngineOptions } from './options.ts'
import type { Profile } from './profiles.ts'

/** A generation that is running; `abort` ends it with finish reason `abort`. */
export interface Flight {
  /** Names a client may abort it by. */
  readonly names: ReadonlySet<string>
  readonly abort: AbortController
  readonly done: Promise<void>
  /** Output tokens so far. */
  readonly drawn: () => number
}

/** The state that all routes share. */
export class Engine {
  readonly options: EngineOptions
  readonly profile: Profile
  readonly scripts = new ScriptBook()
  readonly faults = new FaultSwitch()
  readonly adapters = new Adapters()
  readonly gate = new PauseGate()
  readonly journal: Journal
  readonly flights = new Set<Flight>()
  readonly startedAtSeconds = Math.floor(Date.now() / 1000)
  #weightVersion: string
  #requests = 0

  constructor(options: EngineOptions) {
    this.options = options
    this.profile = loadProfile(options.model)
    this.journal = new Journal(options.journal)
    this.#weightVersion = options.weightVersion
    for (const order of options.faults) this.faults.add(order)
  }

  get weightVersion(): string {
    return this.#weightVersion
  }

  /** Sets the version, or counts it up when none is given. Returns the new one. */
  updateWeightVersion(version?: string): string {
    const counted = /^\d+$/.test(this.#weightVersion)
      ? String(BigInt(this.#weightVersion) + 1n)
      : `${this.#weightVersion}+1`
    this.#weightVersion = version ?? counted
    return this.#weightVersion
  }

  /** For the journal: who asked for what with which weights in force. */
  noteOrder(url: URL): void {
    const route = `${url.pathname}${url.search}`
    this.journal.append({ kind: 'order', time: new Date().toISOString(), route, weightVersion: this.#weightVersion })
  }

  /** Number of this request; the seed of requests that bring none depends on it. */
  nextRequest(): number {
    return this.#requests++
  }

  /** Aborts flights with one of `names`, or all of them. Returns how many. */
  abortFlights(names?: ReadonlySet<string>): number {
    let count = 0
    for (const flight of this.flights) {
      if (names !== undefined && ![...names].some((name) => flight.names.has(name))) continue
      flight.abort.abort()
      count++
    }
    return count
  }

  /** Resolves when everything that is in flight now has ended. */
  async drained(): Promise<void> {
    await Promise.all([...this.flights].map((flight) => flight.done))
  }
}
