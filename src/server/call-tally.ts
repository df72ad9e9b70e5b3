import type { ProxyEvent } from '../proxy/index.ts'

/** Counts by label since the start. */
type Counts = ReadonlyMap<string, number>

/**
 * What the proxy's events add up to, for the metrics: one addition per call, none per streamed event. Labels come from
 * closed sets, so that nothing grows with the work.
 */
export class CallTally {
  readonly #forks = new Map<string, number>()
  readonly #forkedTokens = new Map<string, number>()
  readonly #strategies = new Map<string, number>()
  readonly #classes = new Map<string, number>()
  readonly #outcomes = new Map<string, number>()
  readonly #findings = new Map<string, number>()
  readonly #deliveries = new Map<string, number>()
  readonly #taints = new Map<string, number>()

  get forks(): Counts {
    return this.#forks
  }

  get forkedTokens(): Counts {
    return this.#forkedTokens
  }

  get strategies(): Counts {
    return this.#strategies
  }

  get classes(): Counts {
    return this.#classes
  }

  get outcomes(): Counts {
    return this.#outcomes
  }

  get findings(): Counts {
    return this.#findings
  }

  get deliveries(): Counts {
    return this.#deliveries
  }

  get taints(): Counts {
    return this.#taints
  }

  note(event: ProxyEvent): void {
    if (event.type === 'delivery') add(this.#deliveries, event.delivery)
    if (event.type === 'taint') add(this.#taints, event.cause)
    if (event.type !== 'call') return
    add(this.#strategies, event.strategy)
    add(this.#classes, event.callClass)
    add(this.#outcomes, event.outcome.kind)
    for (const finding of event.findings) add(this.#findings, finding)
    for (const [at, cause] of event.forks.entries()) {
      add(this.#forks, cause)
      add(this.#forkedTokens, cause, event.forkedTokens[at] ?? 0)
    }
  }
}

function add(counts: Map<string, number>, label: string, by = 1): void {
  counts.set(label, (counts.get(label) ?? 0) + by)
}
