import type { Id, RolloutEnd, Verdict } from '../../core/index.ts'
import type { CatalogueReader, RolloutView } from './catalogue.ts'
import { verdictInForce } from './verdict-in-force.ts'

/** Ended rollouts, and how many of them have no number that counts. */
export interface NullCount {
  readonly ended: number
  readonly nulls: number
  /** Null: none has ended. */
  readonly share: number | null
  readonly causes: Readonly<Record<string, number>>
}

/** The same for many, by task and by the weights that sampled; a rollout over several counts for each. */
export interface NullShare extends NullCount {
  readonly tasks: Readonly<Record<string, NullCount>>
  readonly versions: Readonly<Record<string, NullCount>>
  /** Rollouts whose tools said nothing again and again, by their label. */
  readonly emptyTools: number
}

/** An attempt, as far as {@link nullShareOf} looks at it. */
export interface CountedAttempt {
  readonly groupId: Id
  readonly slot: number
  /** Name of its task. */
  readonly task: string
  /** Names that the engine gave the weights that sampled it. */
  readonly versions: readonly string[]
  /** Why it has no number that counts, `cause` null: it has one. Null: it runs, waits for a verdict or was cancelled, so it is not counted. */
  readonly outcome: { readonly cause: string | null } | null
  readonly emptyTools: boolean
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

/** A recorded attempt as it is counted. */
export function countedAttempt(
  { groupId, slot, end, taints, verdicts, labels }: RolloutView,
  task: string,
  versions: readonly string[] = [],
): CountedAttempt {
  const verdict = verdictInForce(verdicts)
  const outcome =
    end === null || end === 'cancelled' || verdict?.status === 'pending'
      ? null
      : { cause: nullCause({ end, taints, verdict }) }
  return { groupId, slot, task, versions, outcome, emptyTools: 'empty_tool_results' in labels }
}

/** Rounds that one query reads at most. */
const pageSize = 500

/** The weights that sampled members of a run's settled rounds, kept, so that only later rounds are read again. */
export class MemberWeights {
  readonly #catalogue: Pick<CatalogueReader, 'settledRounds'>
  readonly #runId: Id
  readonly #weights = new Map<Id, readonly string[]>()
  #seq = 0

  constructor(catalogue: Pick<CatalogueReader, 'settledRounds'>, runId: Id) {
    this.#catalogue = catalogue
    this.#runId = runId
  }

  /** By rollout. Throws `STORE_CORRUPT`. */
  async read(): Promise<ReadonlyMap<Id, readonly string[]>> {
    for (;;) {
      const found = await this.#catalogue.settledRounds(this.#runId, { after: this.#seq, limit: pageSize })
      for (const { seq, settled } of found) {
        for (const { rolloutId, weights = [] } of settled.members) this.#weights.set(rolloutId, weights)
        this.#seq = seq
      }
      if (found.length < pageSize) return this.#weights
    }
  }
}

/** Missing numbers are a bias too: counts them over the last attempt in each slot. `attempts`: oldest first. */
export function nullShareOf(attempts: Iterable<CountedAttempt>): NullShare {
  const last = new Map<string, CountedAttempt>()
  for (const one of attempts) last.set(`${one.groupId} ${one.slot}`, one)
  const all = new Count()
  const tasks = new Map<string, Count>()
  const versions = new Map<string, Count>()
  let emptyTools = 0
  for (const one of last.values()) {
    if (one.emptyTools) emptyTools += 1
    if (one.outcome === null) continue
    const counts = [all, countOf(tasks, one.task), ...one.versions.map((version) => countOf(versions, version))]
    for (const count of counts) count.add(one.outcome.cause)
  }
  return { ...all.told(), tasks: toldOf(tasks), versions: toldOf(versions), emptyTools }
}

class Count {
  #ended = 0
  readonly #causes = new Map<string, number>()

  add(cause: string | null): void {
    this.#ended += 1
    if (cause !== null) this.#causes.set(cause, (this.#causes.get(cause) ?? 0) + 1)
  }

  told(): NullCount {
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

function toldOf(counts: ReadonlyMap<string, Count>): Readonly<Record<string, NullCount>> {
  return Object.fromEntries([...counts].map(([name, count]) => [name, count.told()]))
}
