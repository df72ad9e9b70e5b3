import type { RolloutEnd, Verdict } from '../core/index.ts'
import { type RolloutView, type SettledRound, verdictInForce } from '../trajectory/index.ts'

/** Ended rollouts, and how many of them have no number that counts. */
interface Nulls {
  readonly ended: number
  readonly nulls: number
  /** Null: none has ended. */
  readonly share: number | null
  readonly causes: Readonly<Record<string, number>>
}

/** The same for a run, by task and by the weights that sampled; a rollout over several counts for each. */
export interface NullShare extends Nulls {
  readonly tasks: Readonly<Record<string, Nulls>>
  readonly versions: Readonly<Record<string, Nulls>>
  /** Rollouts whose tools said nothing again and again, by their label. */
  readonly emptyTools: number
}

/** Why an ended rollout has no number that counts; null: it has one. A taint says most, then the end, then the verdict. */
export function nullCause(o: {
  readonly end: RolloutEnd
  readonly taints: readonly string[]
  readonly verdict: Pick<Verdict, 'reward' | 'status'> | null
}): string | null {
  const [taint] = o.taints
  if (taint !== undefined) return taint
  if (o.end === 'infra') return o.end
  if (o.verdict === null) return 'no_verdict'
  return o.verdict.reward === null ? o.verdict.status : null
}

/**
 * Missing numbers are a bias too: counts them over the last attempt in each slot. Rollouts that were cancelled, or that wait for
 * a verdict, are not counted.
 */
export function nullShareOf(
  rollouts: readonly RolloutView[],
  { taskOf, settled }: { readonly taskOf: (rollout: RolloutView) => string; readonly settled: readonly SettledRound[] },
): NullShare {
  const weights = new Map(settled.flatMap(({ members }) => members.map((one) => [one.rolloutId, one.weights ?? []])))
  const last = new Map(rollouts.map((one) => [`${one.groupId} ${one.slot}`, one]))
  const all = new Count()
  const tasks = new Map<string, Count>()
  const versions = new Map<string, Count>()
  for (const rollout of last.values()) {
    const { end, taints, verdicts } = rollout
    const verdict = verdictInForce(verdicts)
    if (end === null || end === 'cancelled' || verdict?.status === 'pending') continue
    const cause = nullCause({ end, taints, verdict })
    const counts = [all, countOf(tasks, taskOf(rollout))]
    for (const version of weights.get(rollout.id) ?? []) counts.push(countOf(versions, version))
    for (const count of counts) count.add(cause)
  }
  const emptyTools = [...last.values()].filter(({ labels }) => 'empty_tool_results' in labels).length
  return { ...all.told(), tasks: toldOf(tasks), versions: toldOf(versions), emptyTools }
}

class Count {
  #ended = 0
  readonly #causes = new Map<string, number>()

  add(cause: string | null): void {
    this.#ended += 1
    if (cause !== null) this.#causes.set(cause, (this.#causes.get(cause) ?? 0) + 1)
  }

  told(): Nulls {
    const nulls = [...this.#causes.values()].reduce((sum, count) => sum + count, 0)
    const share = this.#ended === 0 ? null : nulls / this.#ended
    return { ended: this.#ended, nulls, share, causes: Object.fromEntries(this.#causes) }
  }
}

function countOf(counts: Map<string, Count>, name: string): Count {
  const count = counts.get(name) ?? new Count()
  counts.set(name, count)
  return count
}

function toldOf(counts: ReadonlyMap<string, Count>): Readonly<Record<string, Nulls>> {
  return Object.fromEntries([...counts].map(([name, count]) => [name, count.told()]))
}
