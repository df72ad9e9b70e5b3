import { type Clock, type Id, PaddockError, systemClock, type Task } from '../../core/index.ts'
import { type GroupSpec, requireHere, type RoundView, type SettledRound, type Store } from '../../trajectory/index.ts'
import { type AskedGroup, recordGroup } from '../group/same-group.ts'
import type { OpenRun } from '../run.ts'
import { type TrainerRun, trainerRunOf } from './run-config.ts'

/** What a run of Paddock's own is made of, found and not begun. */
export interface FoundRun {
  /** All that there may be groups of. */
  readonly tasks: readonly Task[]
  /** Begins to work on the groups of the run. Throws what keeps every rollout from beginning. */
  begin(runId: Id, signal: AbortSignal): Promise<OpenRun>
}

export interface OwnRunsParts {
  readonly store: Pick<Store, 'catalogue' | 'trainer'>
  /** Finds environment, tasks and harness of a run. Throws `TASK_*`, `ENVIRONMENT_*`, `HARNESS_*`, `CONFIG_INVALID`. */
  find(asked: TrainerRun): Promise<FoundRun>
  /** A run that was begun in the background failed. */
  onFailure(runId: Id, error: unknown): void
  readonly clock?: Clock
}

interface AtWork {
  readonly tasks: readonly Task[]
  readonly run: OpenRun
}

/** How many {@link OwnRuns.resume} goes on with, newest first: nobody closed the older ones. */
const mostRuns = 50

/** True for a run whose rollouts Paddock does. */
export function isOwn(run: TrainerRun): boolean {
  return run.own !== null
}

/** Runs of trainers whose rollouts Paddock does: groups come over time, and everything is in the store. */
export class OwnRuns {
  readonly #parts: OwnRunsParts
  readonly #clock: Clock
  readonly #stop = new AbortController()
  readonly #atWork = new Map<Id, Promise<AtWork>>()

  constructor(parts: OwnRunsParts) {
    this.#parts = parts
    this.#clock = parts.clock ?? systemClock
  }

  /**
   * Finds the parts of a run, so that what is wrong with it is told before it is opened. Resolves with its tasks. Throws what
   * `find` throws.
   */
  async check(asked: TrainerRun): Promise<readonly Task[]> {
    return (await this.#parts.find(asked)).tasks
  }

  /** Goes on with the runs of earlier processes that are open, or have groups that have not settled. In the background. */
  async resume(): Promise<void> {
    const { catalogue } = this.#parts.store
    const unfinished = (await catalogue.unfinishedRuns('all')).filter((run) => isOwn(trainerRunOf(run)))
    for (const run of unfinished.slice(0, mostRuns)) {
      this.#at(run.id).catch((error: unknown) => this.#parts.onFailure(run.id, error))
    }
  }

  /** Begins a run that was just recorded. Throws what keeps every rollout from beginning. */
  async begin(runId: Id): Promise<void> {
    await this.#at(runId)
  }

  /** All tasks of a run. */
  async tasks(runId: Id): Promise<readonly Task[]> {
    return (await this.#at(runId)).tasks
  }

  /** The task of a name or digest. Throws `NOT_FOUND`. */
  async task(runId: Id, named: string): Promise<Task> {
    const { tasks } = await this.#at(runId)
    const found = tasks.find(({ name, digest }) => name === named || digest === named)
    if (found !== undefined) return found
    throw new PaddockError('NOT_FOUND', `run ${runId} has no task ${named}`, {
      fix: `There are: ${tasks
        .slice(0, 20)
        .map(({ name }) => name)
        .join(', ')}${tasks.length > 20 ? ', …' : ''}.`,
    })
  }

  /** Throws `STORE_CONFLICT` where the id stands for another group. */
  async openGroup(asked: AskedGroup, priority: number): Promise<RoundView> {
    const { catalogue } = this.#parts.store
    const { run } = await this.#at(asked.runId)
    await run.check(asked.task, asked.spec)
    const group = await recordGroup(catalogue, asked, this.#clock.now())
    await run.groups.add({ task: asked.task, group }, { spec: asked.spec, priority, own: run.ownOf(asked.spec) })
    return this.#lastRound(asked.id)
  }

  /** Throws `ROUND_OPEN` where one goes on. */
  async openRound(groupId: Id, spec: GroupSpec): Promise<RoundView> {
    const { catalogue } = this.#parts.store
    const group = await catalogue.group(groupId)
    const { run } = await this.#at(group.runId)
    const task = await catalogue.task(group.taskDigest)
    await run.check(task, spec)
    await run.groups.openRound({ task, group }, { spec, priority: 0, own: run.ownOf(spec) })
    return this.#lastRound(groupId)
  }

  /** Nobody wants more of a group. Resolves with its round if it has settled by this. */
  async cancel(groupId: Id): Promise<SettledRound | null> {
    const { runId } = await this.#parts.store.catalogue.group(groupId)
    return (await this.#at(runId)).run.groups.cancel(groupId)
  }

  /** Nobody wants more of a rollout; nothing where it has ended. */
  async stopRollout(rolloutId: Id, why: string): Promise<void> {
    const { runId, groupId, slot, end } = await this.#parts.store.catalogue.rollout(rolloutId)
    if (end === null) await (await this.#at(runId)).run.groups.stopSlot(groupId, slot, why)
  }

  /** A verdict came for a rollout. */
  async judged(rolloutId: Id): Promise<void> {
    const { runId, groupId } = await this.#parts.store.catalogue.rollout(rolloutId)
    await (await this.#atWork.get(runId))?.run.groups.advance(groupId)
  }

  /** No more groups of a run come; what runs goes on to its end. */
  async end(runId: Id): Promise<void> {
    const work = await this.#atWork.get(runId)
    work?.run.groups.end()
  }

  /** Stops all of them, and resolves when they have: what was under way is gone on with by the next process. */
  async close(): Promise<void> {
    this.#stop.abort(new Error('Paddock stops'))
    const ended = [...this.#atWork.values()].map(async (begun) => (await begun).run.ended)
    await Promise.allSettled(ended)
  }

  /** One that could not begin is tried again by whoever asks next. */
  #at(runId: Id): Promise<AtWork> {
    const known = this.#atWork.get(runId)
    if (known !== undefined) return known
    const begun = this.#begin(runId)
    this.#atWork.set(runId, begun)
    begun.catch(() => this.#atWork.delete(runId))
    return begun
  }

  async #begin(runId: Id): Promise<AtWork> {
    const { catalogue, trainer } = this.#parts.store
    await requireHere(catalogue, runId)
    const found = await this.#parts.find(trainerRunOf(await catalogue.run(runId)))
    const run = await found.begin(runId, this.#stop.signal)
    run.ended.catch((error: unknown) => this.#parts.onFailure(runId, error)).finally(() => this.#atWork.delete(runId))
    for (const group of await catalogue.groups(runId)) {
      const round = (await catalogue.rounds(group.id)).at(-1)
      if (round === undefined || round.settled !== null) continue
      const task = await catalogue.task(group.taskDigest)
      await run.groups.add({ task, group }, { spec: round.spec, priority: 0, own: run.ownOf(round.spec) })
    }
    if (await trainer.isClosed(runId)) run.groups.end()
    return { tasks: found.tasks, run }
  }

  async #lastRound(groupId: Id): Promise<RoundView> {
    const round = (await this.#parts.store.catalogue.rounds(groupId)).at(-1)
    if (round === undefined) throw new PaddockError('INTERNAL', `group ${groupId} lost its round`)
    return round
  }
}
