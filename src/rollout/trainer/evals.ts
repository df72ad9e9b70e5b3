import {
  type Clock,
  type Id,
  type IdMaker,
  KeyedTurns,
  newId,
  PaddockError,
  systemClock,
  type Task,
} from '../../core/index.ts'
import {
  type MemberOut,
  type RolloutView,
  type RoundView,
  rewardOfPolicy,
  type RunRecord,
  type SettledRound,
  type Store,
  verdictInForce,
} from '../../trajectory/index.ts'
import { orNull } from '../group/same-group.ts'
import { groupSpec } from '../group/spec.ts'
import { taskOf } from './asked-task.ts'
import { type EvalAsked, evalOf, type EvalRun, type EvalVersion, type LiveWeights, requireNoEval } from './eval-run.ts'
import { type EvalScore, scoreOf, type TaskScore } from './eval-score.ts'
import { weightsChanged } from './eval-weights.ts'
import type { OwnRuns } from './own-runs.ts'
import type { PolicyUpdates } from './policy-updates.ts'
import { trainerRunOf } from './run-config.ts'
import type { TrainerGroups } from './trainer-groups.ts'
import { untilChange } from './until-change.ts'

/** Why a rollout has no number in an evaluation. */
export type NullReason = MemberOut | 'never_began'

export interface EvalMember {
  readonly rolloutId: Id
  readonly slot: number
  readonly attempt: number
  readonly end: RolloutView['end']
  /** Null: it has none, or not yet. */
  readonly reward: number | null
  /** Of policies that get another number. */
  readonly byPolicy?: Readonly<Record<string, number>>
  /** Null: it has a number, or goes on. */
  readonly out: MemberOut | null
}

/** A member that has a number. */
type Scored = Pick<EvalMember, 'rolloutId' | 'byPolicy'> & { readonly reward: number }

/** One task of an evaluation. */
export interface EvalTask {
  readonly task: Task
  readonly groupId: Id
  /** `waiting`: its group is not open yet, or never was. */
  readonly state: 'waiting' | 'running' | 'settled'
  readonly members: readonly EvalMember[]
}

/** What an evaluation came to. */
export interface EvalResult extends EvalScore {
  /** Rollouts without a number, by reason: they are in no mean, and never 0. */
  readonly nulls: Readonly<Partial<Record<NullReason, number>>>
  /** True where not everything of one policy was sampled by one version. */
  readonly mixed: boolean
  /** Mean of what each trained policy got, where policies have names. */
  readonly meanByPolicy: Readonly<Record<string, number | null>> | undefined
  /** Names of tasks whose instruction the run also trains on, but for case and blanks. */
  readonly overlap: readonly string[]
}

export interface EvalState extends LiveWeights {
  readonly id: Id
  readonly runId: Id
  /** `cancelled`: somebody stopped it, or one of its tasks, before its rollouts were done. */
  readonly state: 'running' | 'done' | 'cancelled'
  readonly asked: EvalAsked
  readonly tasks: readonly EvalTask[]
  /** Null while it goes on. */
  readonly result: EvalResult | null
}

export interface EvalsParts {
  readonly store: Store
  readonly groups: Pick<TrainerGroups, 'open' | 'cancel'>
  readonly own: Pick<OwnRuns, 'task' | 'tasks' | 'end'>
  readonly policy: Pick<PolicyUpdates, 'withLive'>
  /** One of an earlier process could not be gone on with. */
  onFailure(evalId: Id, error: unknown): void
  readonly clock?: Clock
  readonly newId?: IdMaker
}

/**
 * Evaluations. Each is a run of its own, which no trainer can attach to or claim from: its groups are closed to training by
 * that. It is of the weights that are live when it is opened. Everything is in the store, so it outlives this process.
 */
export class Evals {
  readonly #parts: EvalsParts
  readonly #clock: Clock
  readonly #newId: IdMaker
  /** Opening and cancelling one happen one after the other. */
  readonly #turns = new KeyedTurns<Id>()

  constructor(parts: EvalsParts) {
    this.#parts = parts
    this.#clock = parts.clock ?? systemClock
    this.#newId = parts.newId ?? newId
  }

  /**
   * Begins one. Asking again under the same id for the same is nothing. Throws `EVAL_INVALID`, `EVAL_VERSION`, `ENGINE_PAUSED`,
   * `RUN_CLOSED`, `RUN_IS_EVAL`, `STORE_CONFLICT`, `TASK_UNSUPPORTED`, `NOT_FOUND`.
   */
  async open(runId: Id, given: Id | null, asked: EvalAsked): Promise<EvalState> {
    const { store, policy } = this.#parts
    const run = await store.catalogue.run(runId)
    requireNoEval(run)
    const id = given ?? this.#newId()
    const before = await orNull(store.catalogue.run(id))
    if (before === null) {
      if (await store.trainer.isClosed(runId)) throw new PaddockError('RUN_CLOSED', `run ${runId} is closed`)
      const tasks = await this.#tasks(run, asked)
      await policy.withLive(runId, async (live) => {
        requireVersions(asked, live)
        for (const task of tasks) await store.catalogue.putTask(task)
        await store.catalogue.putRun(this.#record(id, run, { of: runId, asked, tasks: tasks.map(digestOf), ...live }))
      })
    } else if (!isSame(evalOf(before), runId, asked)) {
      throw new PaddockError('STORE_CONFLICT', `another run or evaluation stands under ${id}`, {
        fix: 'Give another eval_id, or ask for exactly what was asked for first.',
      })
    }
    await this.#turns.take(id, () => this.#openGroups(id))
    return this.state(runId, id)
  }

  /** Goes on with those of earlier processes of which not all groups are open. In the background. */
  async resume(): Promise<void> {
    for (const { id } of await this.#parts.store.catalogue.unfinishedRuns('evals')) {
      this.#turns.take(id, () => this.#openGroups(id)).catch((error: unknown) => this.#parts.onFailure(id, error))
    }
  }

  /** Throws `NOT_FOUND`. */
  async state(runId: Id, id: Id): Promise<EvalState> {
    const { catalogue, trainer } = this.#parts.store
    const { asked, version, versions, tasks: digests } = await this.#eval(runId, id)
    const isOpen = !(await trainer.isClosed(id))
    const rounds: (RoundView | null)[] = []
    const tasks: EvalTask[] = []
    for (const [at, digest] of digests.entries()) {
      const groupId = groupIdOf(id, at)
      const [round = null] = await catalogue.rounds(groupId)
      const state = round === null ? 'waiting' : round.settled === null ? 'running' : 'settled'
      rounds.push(round)
      tasks.push({ task: await catalogue.task(digest), groupId, state, members: await this.#members(groupId, round) })
    }
    const about = { id, runId, asked, version, ...(versions === undefined ? {} : { versions }), tasks }
    if (isOpen || tasks.some(({ state }) => state === 'running')) return { ...about, state: 'running', result: null }
    const isCancelled = rounds.some((round) => round === null || round.settled?.stoppedBy === 'cancelled')
    return { ...about, state: isCancelled ? 'cancelled' : 'done', result: await this.#result(runId, about) }
  }

  /** How it stands once it has ended, or the time is over. Throws `NOT_FOUND`. */
  async wait(runId: Id, id: Id, o: { readonly waitMs: number; readonly signal: AbortSignal }): Promise<EvalState> {
    const { changes, trainer } = this.#parts.store
    await this.#eval(runId, id)
    await untilChange(
      { ...o, changes, clock: this.#clock, concerns: (change) => change.kind !== 'rollout' && change.runId === id },
      async () => ((await trainer.isClosed(id)) && (await trainer.counts(id)).running === 0 ? true : null),
    )
    return this.state(runId, id)
  }

  /** Nobody wants more of it: what goes on is stopped, and it has the numbers that there are. Throws `NOT_FOUND`. */
  async cancel(runId: Id, id: Id): Promise<EvalState> {
    const { store, groups } = this.#parts
    await this.#eval(runId, id)
    await this.#turns.take(id, async () => {
      await this.#close(id)
      for (const group of await store.catalogue.groups(id)) {
        const [round] = await store.catalogue.rounds(group.id)
        if (round !== undefined && round.settled === null) await groups.cancel(group.id)
      }
    })
    return this.state(runId, id)
  }

  async #openGroups(id: Id): Promise<void> {
    const { catalogue, trainer } = this.#parts.store
    if (await trainer.isClosed(id)) return
    const run = await catalogue.run(id)
    const found = evalOf(run)
    if (found === null) return
    const { k, deadlineMs } = found.asked
    const spec = groupSpec({ n: k, minUsable: 0, deadlineMs, labels: trainerRunOf(run).labels })
    for (const [at, digest] of found.tasks.entries()) {
      const task = await catalogue.task(digest)
      const group = { id: groupIdOf(id, at), runId: id, task, promptVariant: 'default', spec }
      await this.#parts.groups.open(group, 0)
    }
    await this.#close(id)
  }

  /** No group of it is opened any more. */
  async #close(id: Id): Promise<void> {
    await this.#parts.store.trainer.closeRun(id)
    await this.#parts.own.end(id)
  }

  async #tasks(run: RunRecord, { tasks: named, split }: EvalAsked): Promise<readonly Task[]> {
    const { own } = trainerRunOf(run)
    if (named === null && own === null) {
      throw new PaddockError('EVAL_INVALID', `run ${run.id} has no tasks of its own, and none are named`, {
        fix: 'Name `tasks`; only a run that was opened with `tasks` has some without.',
      })
    }
    const about = { id: run.id, own }
    const found: Task[] = []
    if (named === null) {
      const all = await this.#parts.own.tasks(run.id)
      found.push(...all.filter((task) => split === null || task.split === split))
    }
    for (const one of named ?? []) found.push(await taskOf(this.#parts, about, one, split ?? undefined))
    if (found.length === 0) throw new PaddockError('EVAL_INVALID', `run ${run.id} has no tasks of split ${split ?? ''}`)
    const other = found.find((task) => split !== null && task.split !== split)
    if (other !== undefined) {
      throw new PaddockError('EVAL_INVALID', `task ${other.name} is of split ${other.split}, not ${split ?? ''}`)
    }
    const seen = new Set<string>()
    const twice = found.find(({ digest }) => seen.size === seen.add(digest).size)
    if (twice !== undefined) throw new PaddockError('EVAL_INVALID', `task ${twice.name} is named twice`)
    return found
  }

  /** What Paddock's own run is made of is the trainer's, but for how it samples. */
  #record(id: Id, run: RunRecord, evaluation: EvalRun): RunRecord {
    const trainer = trainerRunOf(run)
    const { pin } = evaluation.asked
    return {
      id,
      name: `evaluation of ${run.name}`,
      createdAt: this.#clock.now(),
      config: {
        outside: trainer.own === null,
        trainer: { ...trainer, purpose: 'collect', capacity: null, pin },
        eval: evaluation,
      },
    }
  }

  async #eval(runId: Id, id: Id): Promise<EvalRun> {
    const found = evalOf(await this.#parts.store.catalogue.run(id))
    if (found?.of === runId) return found
    throw new PaddockError('NOT_FOUND', `run ${runId} has no evaluation ${id}`)
  }

  async #members(groupId: Id, round: RoundView | null): Promise<readonly EvalMember[]> {
    if (round === null) return []
    if (round.settled !== null) return round.settled.members.map(settledMember)
    const rollouts = await this.#parts.store.catalogue.rollouts({ groupId })
    return rollouts.map(({ id, slot, attempt, end, verdicts }) => ({
      rolloutId: id,
      slot,
      attempt,
      end,
      reward: verdictInForce(verdicts)?.reward ?? null,
      out: null,
    }))
  }

  async #result(
    runId: Id,
    { asked, version, versions, tasks }: Omit<EvalState, 'state' | 'result'>,
  ): Promise<EvalResult> {
    const nulls: Partial<Record<NullReason, number>> = {}
    const count = (reason: NullReason, more: number): void => {
      if (more > 0) nulls[reason] = (nulls[reason] ?? 0) + more
    }
    const counted: (readonly Scored[])[] = []
    for (const { members } of tasks) {
      count('never_began', asked.k - members.length)
      const scored = members.flatMap(({ rolloutId, out, reward, byPolicy }): readonly Scored[] =>
        out === null && reward !== null ? [{ rolloutId, reward, ...(byPolicy && { byPolicy }) }] : [],
      )
      for (const { out, reward } of members) if (out !== null || reward === null) count(out ?? 'no_number', 1)
      counted.push(scored)
    }
    const score = (policy: string | null): EvalScore =>
      scoreOf(
        counted.map((members): TaskScore => {
          const rewards = members.map((member) => rewardOfPolicy(member, policy))
          return { rewards, passed: rewards.filter((reward) => reward >= asked.passReward).length }
        }),
        asked.k,
      )
    const ids = counted.flat().map(({ rolloutId }) => rolloutId)
    const pinned = { version, ...(versions && { versions }) }
    return {
      ...score(null),
      nulls,
      mixed: await weightsChanged(this.#parts.store.recorder, ids, pinned),
      meanByPolicy: versions && Object.fromEntries(Object.keys(versions).map((name) => [name, score(name).mean])),
      overlap: await this.#overlap(runId, tasks),
    }
  }

  async #overlap(runId: Id, tasks: readonly EvalTask[]): Promise<readonly string[]> {
    const { catalogue } = this.#parts.store
    if (trainerRunOf(await catalogue.run(runId)).purpose !== 'train') return []
    const digests = new Set((await catalogue.groups(runId)).map(({ taskDigest }) => taskDigest))
    const trained = new Set<string>()
    for (const digest of digests) trained.add(plain(await catalogue.task(digest)))
    return tasks.flatMap(({ task }) => (trained.has(plain(task)) ? [task.name] : []))
  }
}

function groupIdOf(id: Id, at: number): Id {
  return `${id}.${at}`
}

function digestOf({ digest }: Task): string {
  return digest
}

function plain({ instruction }: Task): string {
  return instruction.normalize('NFKC').toLowerCase().replace(/\s+/g, ' ').trim()
}

function settledMember({ rolloutId, slot, attempt, end, out, verdict }: SettledRound['members'][number]): EvalMember {
  const byPolicy = verdict?.byPolicy
  return { rolloutId, slot, attempt, end, reward: verdict?.reward ?? null, ...(byPolicy && { byPolicy }), out }
}

function isSame(found: EvalRun | null, runId: Id, asked: EvalAsked): boolean {
  return found !== null && found.of === runId && JSON.stringify(found.asked) === JSON.stringify(asked)
}

function requireVersions({ version, versions }: EvalAsked, live: LiveWeights): void {
  if (live.versions === undefined) {
    if (versions !== undefined) {
      throw new PaddockError('EVAL_INVALID', '`versions` is of policies by name, and the run has one without', {
        fix: 'Give `version`.',
      })
    }
    return requireLive('', version, live.version)
  }
  const several = Object.keys(live.versions).length > 1
  if (!several) requireLive('', version, live.version)
  else if (version !== null) {
    throw new PaddockError('EVAL_INVALID', '`version` is of one policy, and the run trains several', {
      fix: 'Give `versions`, a number for each that has to be live.',
    })
  }
  for (const [name, asked] of Object.entries(versions ?? {})) {
    if (!Object.hasOwn(live.versions, name)) {
      throw new PaddockError('EVAL_INVALID', `the run trains no policy ${name}`, {
        fix: `It trains ${Object.keys(live.versions).join(', ')}.`,
      })
    }
    requireLive(` of ${name}`, asked, live.versions[name] ?? null)
  }
}

function requireLive(whose: string, asked: number | null, live: EvalVersion | null): void {
  if (asked === null || asked === live?.ordinal) return
  const what = live === null ? 'no weights were announced' : `${live.ordinal} (${live.label}) is live`
  throw new PaddockError('EVAL_VERSION', `version ${asked}${whose} is asked for, and ${what}`)
}
