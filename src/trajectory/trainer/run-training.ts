import type { Id } from '../../core/index.ts'
import type {
  ClaimMade,
  Disposition,
  HandedOutRow,
  StepMetrics,
  TrainerNews,
  TrainerPlace,
  TrainerReader,
  WentBack,
} from '../contract/index.ts'

/** Lines of a kind that one query reads at most. */
const pageSize = 500

/** What stands of a disposition. */
export type Given = Pick<Disposition, 'step' | 'outcome' | 'rewardUsed'> & { readonly incarnation: number }

/** A row as it was handed out last. */
interface Handed {
  readonly n: number
  readonly labels: readonly string[]
  readonly liveOrdinal: number | null
}

interface OfRollout {
  readonly rows: Map<string, Handed>
  given: readonly Given[]
}

/** What a trainer was handed of a rollout, and what stands of what it said of it. */
export interface RolloutTraining {
  /** What the engine called the weights that sampled it, the oldest first. */
  readonly labels: readonly string[]
  /** Of its oldest weights, in announced weights, when it was handed out; null: none were announced. */
  readonly age: number | null
  readonly given: readonly Given[]
}

/**
 * What a run's trainer was handed and said, kept and brought up to date by what came since: no query reads a whole run. What a later
 * incarnation went back behind is taken out when that attaches.
 */
export class RunTraining {
  readonly #reader: Pick<TrainerReader, 'news' | 'rowsOfClaim'>
  readonly #runId: Id
  #place: TrainerPlace | null = null
  readonly #back: WentBack[] = []
  readonly #ordinals = new Map<string, number>()
  /** Claims, by their round, of which no row was handed out yet. */
  readonly #waiting = new Map<string, ClaimMade>()
  readonly #rollouts = new Map<Id, OfRollout>()
  /** Rollouts that were sampled by weights without a number, by what the engine called those. */
  readonly #unnamed = new Map<string, Set<Id>>()
  readonly #metrics = new Map<string, Omit<StepMetrics, 'undone'>>()
  #changed = new Set<Id>()
  #version = 0

  constructor(reader: Pick<TrainerReader, 'news' | 'rowsOfClaim'>, runId: Id) {
    this.#reader = reader
    this.#runId = runId
  }

  /** Counts each change of what is kept. */
  get version(): number {
    return this.#version
  }

  /** Reads on until all is read or the time is over, one page at least. Resolves with whether all is read. Throws as the store does. */
  async advance(until: number): Promise<boolean> {
    for (const claim of this.#waiting.values()) await this.#takeRows(claim)
    for (;;) {
      const news = await this.#reader.news(this.#runId, { after: this.#place, limit: pageSize })
      await this.#take(news)
      this.#place = news.place
      if (news.isAll) return true
      if (performance.now() > until) return false
    }
  }

  /** Rollouts of which something changed since this was asked last. */
  changed(): ReadonlySet<Id> {
    const changed = this.#changed
    this.#changed = new Set()
    return changed
  }

  /** Null where no row of it was handed out. */
  of(rolloutId: Id): RolloutTraining | null {
    const kept = this.#rollouts.get(rolloutId)
    if (kept === undefined || kept.rows.size === 0) return null
    const rows = [...kept.rows].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
    const ages = rows.flatMap((row) => ageOf(row, this.#ordinals) ?? [])
    return {
      labels: [...new Set(rows.flatMap(({ labels }) => labels))],
      age: ages.length === 0 ? null : Math.max(...ages),
      given: kept.given,
    }
  }

  /** True where a row of it was trained on. */
  isUsed(rolloutId: Id): boolean {
    return this.#rollouts.get(rolloutId)?.given.some(({ outcome }) => outcome === 'used') === true
  }

  /** What stands of all that was said of rows. */
  *given(): Generator<Given> {
    for (const { given } of this.#rollouts.values()) yield* given
  }

  /** The number of announced weights by what the engine called them. */
  get ordinals(): ReadonlyMap<string, number> {
    return this.#ordinals
  }

  /** Numbers of the trainer's steps, by step and incarnation. */
  metrics(): readonly StepMetrics[] {
    return [...this.#metrics.values()]
      .toSorted((a, b) => a.step - b.step || a.incarnation - b.incarnation)
      .map((one) => ({
        ...one,
        undone: this.#back.some(
          ({ incarnation, resumeStep }) => incarnation > one.incarnation && one.step > (resumeStep ?? -1),
        ),
      }))
  }

  async #take({ incarnations, versions, claims, dispositions, metrics }: TrainerNews): Promise<void> {
    const lines = [incarnations, versions, claims, dispositions, metrics]
    if (lines.some(({ length }) => length > 0)) this.#version += 1
    for (const back of incarnations) this.#goBack(back)
    for (const { label, ordinal } of versions) this.#announce(label, ordinal)
    for (const claim of claims) {
      this.#waiting.set(`${claim.groupId}/${claim.round}`, claim)
      await this.#takeRows(claim)
    }
    for (const { row, step, outcome, rewardUsed, incarnation } of dispositions) {
      if (this.#isUndone(incarnation, step)) continue
      const rolloutId = rolloutOf(row)
      const kept = this.#kept(rolloutId)
      kept.given = [...kept.given, { step, outcome, rewardUsed, incarnation }]
      this.#changed.add(rolloutId)
    }
    for (const one of metrics) {
      const key = `${one.step}/${one.incarnation}`
      const before = this.#metrics.get(key)
      this.#metrics.set(key, {
        ...one,
        values: { ...before?.values, ...one.values },
        mismatch: one.mismatch ?? before?.mismatch ?? null,
      })
    }
  }

  #goBack(back: WentBack): void {
    this.#back.push(back)
    for (const [id, kept] of this.#rollouts) {
      const standing = kept.given.filter(({ incarnation, step }) => !this.#isUndone(incarnation, step))
      if (standing.length === kept.given.length) continue
      kept.given = standing
      this.#changed.add(id)
    }
  }

  #isUndone(incarnation: number, step: number): boolean {
    return this.#back.some((back) => back.incarnation > incarnation && step > back.undoneFrom)
  }

  /** Ages of what was handed out before its weights had a number are counted anew. */
  #announce(label: string, ordinal: number): void {
    this.#ordinals.set(label, ordinal)
    for (const id of this.#unnamed.get(label) ?? []) this.#changed.add(id)
    this.#unnamed.delete(label)
  }

  /** A claim's rows are handed out all at once; one without rows is looked at again until it is over. */
  async #takeRows({ id, n, groupId, round, liveOrdinal }: ClaimMade): Promise<void> {
    for (let after = ''; ;) {
      const { rows, isOver } = await this.#reader.rowsOfClaim(id, { after, limit: pageSize })
      if (rows.length > 0 || isOver) this.#waiting.delete(`${groupId}/${round}`)
      for (const { row, labels } of rows) this.#hand(row, { n, labels, liveOrdinal })
      if (rows.length < pageSize) return
      after = rows.at(-1)?.row ?? ''
    }
  }

  #hand(row: string, handed: Handed): void {
    const rolloutId = rolloutOf(row)
    const { rows } = this.#kept(rolloutId)
    if ((rows.get(row)?.n ?? 0) >= handed.n) return
    rows.set(row, handed)
    for (const label of handed.labels) {
      if (this.#ordinals.has(label)) continue
      this.#unnamed.set(label, (this.#unnamed.get(label) ?? new Set()).add(rolloutId))
    }
    this.#changed.add(rolloutId)
    this.#version += 1
  }

  #kept(rolloutId: Id): OfRollout {
    const known = this.#rollouts.get(rolloutId)
    if (known !== undefined) return known
    const made: OfRollout = { rows: new Map(), given: [] }
    this.#rollouts.set(rolloutId, made)
    return made
  }
}

/** How old a row's oldest weights were when it was handed out; null where nobody announced any. */
export function ageOf(
  { labels, liveOrdinal }: Pick<HandedOutRow, 'labels' | 'liveOrdinal'>,
  ordinals: ReadonlyMap<string, number>,
): number | null {
  if (liveOrdinal === null || labels.length === 0) return null
  return liveOrdinal - Math.min(...labels.map((label) => ordinals.get(label) ?? 0))
}

/** Names of a rollout's rows begin with its id and a colon. */
function rolloutOf(row: string): Id {
  return row.split(':', 1)[0] ?? ''
}
