import type { Id, RolloutEnd, VerdictStatus } from '../core/index.ts'
import type { ProxyEvent } from '../proxy/index.ts'
import { nullCause } from '../trajectory/index.ts'
import type { RunProgress } from '../rollout/index.ts'
import type { DriftCause } from '../trajectory/index.ts'

// Known from the start, so that the first of its kind is seen to come.
const noEnds: Readonly<Record<RolloutEnd, 0>> = {
  completed: 0,
  agent_timeout: 0,
  budget: 0,
  context_overflow: 0,
  horizon: 0,
  harness_crash: 0,
  cancelled: 0,
  infra: 0,
}
const noVerdicts: Readonly<Record<VerdictStatus, 0>> = {
  scored: 0,
  hacked: 0,
  pending: 0,
  unscorable: 0,
  infra_error: 0,
  gold_error: 0,
  judge_failed: 0,
}
const noForks: Readonly<Record<DriftCause, 0>> = {
  think_stripped: 0,
  json_reserialised: 0,
  boundary_merge: 0,
  template: 0,
  harness_rewrite: 0,
  context_edit: 0,
  injected_removed: 0,
  compaction: 0,
  parser: 0,
  retry: 0,
  truncated: 0,
  stop_cut: 0,
  multimodal: 0,
  ambiguous: 0,
  unknown: 0,
}

/** Counts by label since the start. */
type Counts = ReadonlyMap<string, number>

/**
 * What calls and rollouts add up to, for the metrics: one addition per call, none per streamed event. Labels come from
 * closed sets, so that nothing grows with the work.
 */
export class WorkTally {
  readonly #forks = new Map<string, number>(Object.entries(noForks))
  readonly #forkedTokens = new Map<string, number>(Object.entries(noForks))
  readonly #strategies = new Map<string, number>()
  readonly #classes = new Map<string, number>()
  readonly #outcomes = new Map<string, number>()
  readonly #findings = new Map<string, number>()
  readonly #deliveries = new Map<string, number>()
  readonly #taints = new Map<string, number>()
  readonly #ends = new Map<string, number>(Object.entries(noEnds))
  readonly #verdicts = new Map<string, number>(Object.entries(noVerdicts))
  readonly #nulls = new Map<string, number>()
  readonly #policyTokens = new Map<string, number>()
  readonly #running = new Set<Id>()
  /** Rollouts of runs whose tools said nothing again and again. */
  emptyTools = 0

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

  /** Sampled tokens by policy, where there are several. */
  get policyTokens(): Counts {
    return this.#policyTokens
  }

  get ends(): Counts {
    return this.#ends
  }

  get verdicts(): Counts {
    return this.#verdicts
  }

  /** Rollouts of runs that ended without a number that counts, by cause. */
  get nulls(): Counts {
    return this.#nulls
  }

  /** Rollouts that have begun and not ended. */
  get running(): number {
    return this.#running.size
  }

  noteProgress(progress: RunProgress): void {
    if (progress.type === 'stage') this.#running.add(progress.rolloutId)
    if (progress.type !== 'ended') return
    const { rolloutId, end, verdict, unverified, taints, retried, emptyToolResults } = progress.rollout
    this.#running.delete(rolloutId)
    if (emptyToolResults !== undefined) this.emptyTools += 1
    if (unverified) return
    add(this.#ends, end)
    if (verdict !== null) add(this.#verdicts, verdict.status)
    const cause = retried || end === 'cancelled' ? null : nullCause({ end, taints, verdict })
    if (cause !== null) add(this.#nulls, cause)
  }

  note(event: ProxyEvent): void {
    if (event.type === 'delivery') add(this.#deliveries, event.delivery)
    if (event.type === 'taint') add(this.#taints, event.cause)
    if (event.type !== 'call') return
    add(this.#strategies, event.strategy)
    add(this.#classes, event.callClass)
    add(this.#outcomes, event.outcome.kind)
    if (event.policy !== undefined) add(this.#policyTokens, event.policy, event.sampledTokens ?? 0)
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
