import { type Id, PaddockError } from '../../core/index.ts'
import type { GroupSpec, RoundView, SettledRound, Store } from '../../trajectory/index.ts'
import { isOutside, type OutsideGroups } from '../group/outside.ts'
import type { AskedGroup } from '../group/same-group.ts'
import type { NullLimits } from '../group/null-limit.ts'
import { requireNoEval } from './eval-run.ts'
import { isOwn, type OwnRuns } from './own-runs.ts'
import { trainerRunOf } from './run-config.ts'

/** Groups of trainers' runs, by whomever their rollouts are done. */
export class TrainerGroups {
  readonly #store: Pick<Store, 'catalogue'>
  readonly #outside: OutsideGroups
  readonly #own: OwnRuns
  readonly #nullLimits: NullLimits
  readonly #requireEngine: () => void

  constructor(parts: {
    /** Throws `ENGINE_NONE` where there is none yet. */
    readonly requireEngine: () => void
    readonly store: Pick<Store, 'catalogue'>
    readonly outside: OutsideGroups
    readonly own: OwnRuns
    readonly nullLimits: NullLimits
  }) {
    this.#store = parts.store
    this.#outside = parts.outside
    this.#own = parts.own
    this.#nullLimits = parts.nullLimits
    this.#requireEngine = parts.requireEngine
  }

  /** Throws `STORE_CONFLICT` where the id stands for something else, `GROUP_INVALID`, `ENGINE_NONE`. */
  async open(asked: AskedGroup, priority: number): Promise<RoundView> {
    this.#requireEngine()
    await this.#requireCarries(asked.runId, asked.spec)
    await this.#requireForks(asked.runId, asked.spec)
    if (!(await this.#isOutside(asked.runId))) return this.#own.openGroup(asked, priority)
    return (await this.#outside.openGroup({ ...asked, name: asked.id })).round
  }

  /** Opens a further round. Throws `ROUND_OPEN` where one goes on, `RUN_IS_EVAL`, `GROUP_INVALID`. */
  async openRound(groupId: Id, spec: GroupSpec): Promise<RoundView> {
    this.#requireEngine()
    const runId = await this.#runOf(groupId)
    requireNoEval(await this.#store.catalogue.run(runId))
    await this.#requireCarries(runId, spec)
    await this.#requireForks(runId, spec)
    const by = (await this.#isOutside(runId)) ? this.#outside : this.#own
    return by.openRound(groupId, spec)
  }

  /** Nobody wants more of a group: what goes on is stopped and kept. Resolves with its round if that has settled by this. */
  async cancel(groupId: Id): Promise<SettledRound | null> {
    const by = (await this.#isOutside(await this.#runOf(groupId))) ? this.#outside : this.#own
    return by.cancel(groupId)
  }

  /** Nobody wants more of a rollout: it ends as `cancelled`, unless it has ended. */
  async stopRollout(rolloutId: Id, why: string): Promise<void> {
    const { runId } = await this.#store.catalogue.rollout(rolloutId)
    const by = (await this.#isOutside(runId)) ? this.#outside : this.#own
    await by.stopRollout(rolloutId, why)
  }

  /** A verdict came for a rollout. */
  async judged(rolloutId: Id): Promise<void> {
    await this.#nullLimits.look(rolloutId)
    const { runId } = await this.#store.catalogue.rollout(rolloutId)
    const by = (await this.#isOutside(runId)) ? this.#outside : this.#own
    await by.judged(rolloutId)
  }

  async #requireCarries(runId: Id, { carry }: GroupSpec): Promise<void> {
    if (!carry) return
    const run = trainerRunOf(await this.#store.catalogue.run(runId))
    if (isOwn(run)) throw cannotCarry('Paddock does the rollouts of this run, and carries none into a next round')
    if (run.staleness.mode === 'gate')
      throw cannotCarry('between two rounds nothing holds a gate for members that go on')
  }

  /** Whoever started a harness starts it anew. */
  async #requireForks(runId: Id, { fork }: GroupSpec): Promise<void> {
    if (fork === null || !(await this.#isOutside(runId))) return
    throw new PaddockError(
      'FORK_REFUSED',
      `The rollouts of run ${runId} are done outside of Paddock, which cannot start them anew.`,
    )
  }

  async #runOf(groupId: Id): Promise<Id> {
    return (await this.#store.catalogue.group(groupId)).runId
  }

  async #isOutside(runId: Id): Promise<boolean> {
    return isOutside(await this.#store.catalogue.run(runId))
  }
}

function cannotCarry(why: string): PaddockError {
  return new PaddockError('GROUP_INVALID', `\`carry\` is not for this run: ${why}.`, { fix: 'Leave `carry` out.' })
}
