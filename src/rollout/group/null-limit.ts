import { type Id, PaddockError } from '../../core/index.ts'
import {
  type CatalogueReader,
  type CountedAttempt,
  countedAttempt,
  MemberWeights,
  nullShareOf,
  type RunRecord,
  type SettledRound,
} from '../../trajectory/index.ts'

/** A share over fewer ended rollouts says too little. */
const leastEnded = 20
/** Tasks that an error names. */
const mostTasks = 10

/** Counts how the rollouts of a run end, and says when too large a share of them has no number. */
export class NullLimit {
  readonly #about: Pick<RunRecord, 'id'> & { readonly max: number; readonly least: number; readonly fix: string }
  /** The last attempt in each slot. */
  readonly #last = new Map<string, CountedAttempt>()
  #ended = 0
  #nulls = 0

  constructor(about: Pick<RunRecord, 'id'> & { readonly max: number; readonly least: number; readonly fix: string }) {
    this.#about = about
  }

  /** An attempt has ended, or got another verdict. */
  note(attempt: CountedAttempt): void {
    const slot = `${attempt.groupId} ${attempt.slot}`
    this.#add(this.#last.get(slot), -1)
    this.#add(attempt, 1)
    this.#last.set(slot, attempt)
  }

  /** Enough rollouts have ended, and too large a share of them has no number: none may begin. */
  get isOver(): boolean {
    return this.#ended >= this.#about.least && this.#isAbove
  }

  /** The error of a stopped run; null: it has not stopped. `atEnd`: all of it has ended, so few rollouts are enough. */
  refusal(atEnd = false): PaddockError | null {
    if (!(atEnd ? this.#isAbove : this.isOver)) return null
    const { id, max, fix } = this.#about
    const { ended, nulls, share, causes, tasks } = nullShareOf(this.#last.values())
    const worst = Object.entries(tasks)
      .filter(([, one]) => one.nulls > 0)
      .toSorted(([a, one], [b, other]) => other.nulls - one.nulls || (a < b ? -1 : 1))
    const named = worst.slice(0, mostTasks).map(([name, one]) => `${name} (${countsOf(one.causes).join(', ')})`)
    if (worst.length > mostTasks) named.push(`and ${worst.length - mostTasks} more tasks`)
    return new PaddockError(
      'RUN_NULL_SHARE',
      `run ${id} has stopped: ${nulls} of ${ended} ended rollouts have no number, a larger share than its max_null_share of ${max}: ${named.join('; ')}`,
      { data: { run: id, max_null_share: max, ended, nulls, share, causes: countsOf(causes), tasks: named }, fix },
    )
  }

  get #isAbove(): boolean {
    return this.#nulls > this.#about.max * this.#ended
  }

  #add(attempt: CountedAttempt | undefined, count: 1 | -1): void {
    if (attempt === undefined || attempt.outcome === null) return
    this.#ended += count
    if (attempt.outcome.cause !== null) this.#nulls += count
  }
}

/** The most frequent first. */
function countsOf(causes: Readonly<Record<string, number>>): readonly string[] {
  const counts = Object.entries(causes).toSorted(([, a], [, b]) => b - a)
  return counts.map(([cause, count]) => `${count} ${cause}`)
}

/** The limits of the runs that have one, shared by all who begin rollouts. */
export class NullLimits {
  readonly #catalogue: Pick<CatalogueReader, 'run' | 'rollout' | 'rollouts' | 'settledRounds' | 'task'>
  readonly #limits = new Map<Id, Promise<NullLimit>>()

  constructor(catalogue: Pick<CatalogueReader, 'run' | 'rollout' | 'rollouts' | 'settledRounds' | 'task'>) {
    this.#catalogue = catalogue
  }

  /** The limit of a recorded run, with what has ended so far; null: it has none. `max`: in place of the recorded one. Throws `NOT_FOUND`. */
  async of(runId: Id, max?: number): Promise<NullLimit | null> {
    const asked = askedOf(await this.#catalogue.run(runId))
    const known = max === undefined ? this.#limits.get(runId) : undefined
    const most = max ?? asked.maxNullShare
    if (known !== undefined || most === undefined) return known ?? null
    const limit = this.#read(runId, most, asked)
    this.#limits.set(runId, limit)
    limit.catch(() => this.#limits.delete(runId))
    return limit
  }

  /** Throws `RUN_NULL_SHARE` where a run has stopped. */
  async require(runId: Id): Promise<void> {
    const refusal = (await this.of(runId))?.refusal() ?? null
    if (refusal !== null) throw refusal
  }

  /** A rollout was ended, or got another verdict. Without a verdict it waits for one until its round has settled. */
  async look(rolloutId: Id, hasSettled = false): Promise<void> {
    const rollout = await this.#catalogue.rollout(rolloutId)
    const limit = await this.of(rollout.runId)
    if (limit === null) return
    const attempt = countedAttempt(rollout, (await this.#catalogue.task(rollout.taskDigest)).name)
    if (hasSettled || attempt.outcome?.cause !== 'no_verdict') limit.note(attempt)
  }

  /** A round has settled: members without a verdict wait no longer. */
  async settled({ runId, members }: Pick<SettledRound, 'runId' | 'members'>): Promise<void> {
    if ((await this.of(runId)) === null) return
    for (const { rolloutId, verdict } of members) if (verdict === null) await this.look(rolloutId, true)
  }

  async #read(runId: Id, max: number, { least, fix, isOutside }: AskedLimit): Promise<NullLimit> {
    const limit = new NullLimit({ id: runId, max, least, fix })
    const settled = await new MemberWeights(this.#catalogue, runId).read()
    const names = new Map<string, string>()
    for (const rollout of await this.#catalogue.rollouts({ runId })) {
      const name = names.get(rollout.taskDigest) ?? (await this.#catalogue.task(rollout.taskDigest)).name
      names.set(rollout.taskDigest, name)
      const attempt = countedAttempt(rollout, name)
      const cause = attempt.outcome?.cause
      // Until its round has settled, a fault may be tried again, and a verdict may come from outside.
      const mayChange = cause === 'infra' || (isOutside && cause === 'no_verdict')
      if (!mayChange || settled.has(rollout.id)) limit.note(attempt)
    }
    return limit
  }
}

interface AskedLimit {
  readonly maxNullShare: number | undefined
  readonly least: number
  readonly fix: string
  readonly isOutside: boolean
}

function askedOf({ id, config }: RunRecord): AskedLimit {
  // Only runs that Paddock recorded have these keys: see `runRollouts` and `TrainerRuns`.
  const {
    maxNullShare,
    trainer,
    tasks,
    n,
    outside: isOutside = false,
  } = config as {
    readonly outside?: boolean
    readonly maxNullShare?: number
    readonly trainer?: { readonly maxNullShare?: number }
    readonly tasks?: readonly unknown[]
    readonly n?: number
  }
  if (trainer !== undefined) {
    const fix = 'Correct the causes, and open another run. A late verdict with a number lowers the share of this one.'
    return { maxNullShare: trainer.maxNullShare, least: leastEnded, fix, isOutside }
  }
  const planned = (tasks?.length ?? leastEnded) * (n ?? 1)
  const fix = `Correct the causes, then \`paddock run --resume ${id} --max-null-share 1\` runs the rest. A new run starts counting again.`
  return { maxNullShare, least: Math.min(leastEnded, planned), fix, isOutside }
}
