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
  type Attached,
  type FeedStop,
  type GroupSpec,
  type HandoutCounts,
  heldOutSplits,
  type PolicyEvent,
  type RoundView,
  type RunEvent,
  policiesOf,
  type RunPolicy,
  type RunRecord,
  type SessionPolicy,
  type Store,
  type TrainerBook,
} from '../../trajectory/index.ts'
import type { PolicyFacts } from '../../proxy/index.ts'
import { orNull } from '../group/same-group.ts'
import type { NullLimits } from '../group/null-limit.ts'
import { type AskedTask, taskOf } from './asked-task.ts'
import { requireNoEval } from './eval-run.ts'
import { type FindSelector, requireFeed } from './feed.ts'
import type { OwnRuns } from './own-runs.ts'
import type { RoundScores } from './round-scores.ts'
import { isPaused } from './policy-updates.ts'
import { type TrainerRun, trainerRunOf } from './run-config.ts'
import type { TrainerGroups } from './trainer-groups.ts'
import { untilChange } from './until-change.ts'

export interface SubmittedGroup {
  readonly id: Id
  readonly task: AskedTask
  readonly promptVariant: string
  readonly spec: GroupSpec
  /** Higher first, among the groups of runs whose rollouts Paddock does. */
  readonly priority: number
}

export interface GroupsTaken {
  readonly accepted: readonly { readonly id: Id; readonly round: RoundView }[]
  /** Ids for which there is no room now. */
  readonly refused: readonly Id[]
  readonly capacity: Capacity
}

/** How many groups of a run may be open or waiting for its trainer, and are. */
export interface Capacity {
  readonly groups: number | null
  readonly taken: number
}

/** How a trainer's run stands. */
export interface TrainerRunState {
  readonly run: RunRecord
  readonly asked: TrainerRun
  readonly closed: boolean
  readonly incarnation: number | null
  readonly counts: HandoutCounts
  readonly capacity: Capacity
  /** The weights that are live; null: none were announced. */
  readonly version: { readonly ordinal: number; readonly label: string } | null
  /** What was said of weights last; null: nothing. */
  readonly policy: PolicyEvent['kind'] | null
  /** The same of each that it trains, by name; empty: there is one, without a name. */
  readonly policies: readonly PolicyState[]
  /** True once weights went live over groups that they made too old: staleness is `report` from then on. */
  readonly passedGate: boolean
  /** Why its feed asks for nothing more until the trainer attaches again; null: it goes on, or there is none. */
  readonly feedStop: FeedStop | null
  /** Why no rollout of it begins any more: too many have no number. Null: they do. */
  readonly nullStop: PaddockError | null
}

/** How the weights of one of several policies stand. */
export interface PolicyState extends Pick<TrainerRunState, 'version' | 'policy' | 'passedGate' | 'counts'> {
  readonly name: string
  readonly trained: boolean
}

export interface TrainerRunsParts {
  readonly store: Store
  readonly groups: Pick<TrainerGroups, 'open' | 'openRound'>
  readonly scores: Pick<RoundScores, 'require'>
  readonly nullLimits: NullLimits
  readonly own: Pick<OwnRuns, 'check' | 'begin' | 'task' | 'end'>
  readonly findSelector: FindSelector
  /** What the engine gives, as last learned. */
  readonly engine: { readonly name: string; readonly gives: { readonly tokenIds: boolean; readonly logprobs: boolean } }
  /** False: a trainer names the engine later. */
  readonly hasEngine: () => boolean
  /** Of the configuration; empty: there is one, without a name. */
  readonly policies: readonly PolicyFacts[]
  readonly clock?: Clock
  readonly newId?: IdMaker
}

/** Sampling from which recorded logprobs of any kind are those of the policy itself. */
export const neutralSampling: SessionPolicy['pin'] = {
  temperature: 1,
  topP: 1,
  topK: -1,
  minP: 0,
  presencePenalty: 0,
  frequencyPenalty: 0,
  repetitionPenalty: 1,
}

/** Runs that a trainer drives: it opens them, asks for groups, and takes what settles. Everything is in the store. */
export class TrainerRuns {
  readonly #parts: TrainerRunsParts
  readonly #clock: Clock
  readonly #newId: IdMaker
  /** Groups of one run are taken one after the other, so that no two see the same room. */
  readonly #turns = new KeyedTurns<Id>()

  constructor(parts: TrainerRunsParts) {
    this.#parts = parts
    this.#clock = parts.clock ?? systemClock
    this.#newId = parts.newId ?? newId
  }

  /** Opens a run. Asking again for the same is nothing. Throws `STORE_CONFLICT` for another one, `RUN_REFUSED`. */
  async open(asked: {
    readonly id: Id | null
    readonly name: string
    readonly trainer: TrainerRun
  }): Promise<TrainerRunState> {
    const { store, engine, hasEngine, findSelector } = this.#parts
    const { trainer } = asked
    const { gives } = engine
    if (hasEngine() && trainer.purpose === 'train' && !(gives.tokenIds && gives.logprobs)) {
      const lacks = gives.tokenIds ? 'no logprobs' : 'no token ids'
      throw new PaddockError(
        'RUN_REFUSED',
        `the engine (${engine.name}) gives ${lacks}, so nothing of this run could train`,
        {
          fix: 'Use vLLM or SGLang (`engine.kind`), or ask for purpose `collect`.',
        },
      )
    }
    this.#parts.scores.require(trainer.score ?? {})
    if (trainer.select !== undefined) await findSelector(trainer.select, 'select')
    const id = asked.id ?? this.#newId()
    const before = await orNull(store.catalogue.run(id))
    const policies = this.#policiesOf(trainer)
    const config = { outside: trainer.own === null, trainer, ...(policies.length === 0 ? {} : { policies }) }
    if (before === null) {
      if (trainer.own !== null) await requireFeed(trainer, await this.#parts.own.check(trainer), findSelector)
      await store.catalogue.putRun({ id, name: asked.name, createdAt: this.#clock.now(), config })
    } else if (before.name !== asked.name || JSON.stringify(before.config) !== JSON.stringify(config)) {
      throw new PaddockError('STORE_CONFLICT', `run ${id} was opened otherwise`, {
        fix: 'Give another run_id, or ask for exactly what was asked for first.',
      })
    }
    if (trainer.own !== null && hasEngine() && !(await store.trainer.isClosed(id))) await this.#parts.own.begin(id)
    return this.state(id)
  }

  /** The policies of a run; it trains those that it names, or all that are trained. Throws `POLICY_UNKNOWN`, `RUN_REFUSED`. */
  #policiesOf({ policies: named, model }: TrainerRun): readonly RunPolicy[] {
    const { policies } = this.#parts
    const known = policies.flatMap(({ name, trained }) => (trained ? [name] : []))
    const unknown = named?.find((name) => !known.includes(name))
    if (unknown !== undefined) {
      const are = known.length === 0 ? 'none is configured' : `those that may be trained are ${known.join(', ')}`
      throw new PaddockError('POLICY_UNKNOWN', `the run would train the policy ${unknown}, and ${are}`, {
        data: { policy: unknown, known },
      })
    }
    if (policies.length > 0 && known.length === 0) {
      throw new PaddockError('RUN_REFUSED', 'none of the policies is trained', {
        fix: 'Leave `trained: false` out of one of `policies` of the configuration.',
      })
    }
    if (policies.length > 0 && model !== null) {
      throw new PaddockError('RUN_REFUSED', 'the run names a model, and each of its policies has one of its own', {
        fix: 'Leave `model` out, or set it in `policies` of the configuration.',
      })
    }
    return policies.map(({ name, trained }) => ({ name, trained: trained && (named?.includes(name) ?? true) }))
  }

  /** Throws `NOT_FOUND`. */
  async state(runId: Id): Promise<TrainerRunState> {
    const { trainer, catalogue } = this.#parts.store
    const run = await catalogue.run(runId)
    const counts = await trainer.counts(runId)
    const versions = await trainer.versions(runId)
    const standing = async (policy: string | null): Promise<Omit<PolicyState, 'name' | 'trained' | 'counts'>> => {
      const live = versions.findLast((one) => !one.gone && (policy === null || one.policy === policy))
      return {
        passedGate: await trainer.passedGate(runId, policy),
        policy: (await trainer.lastPolicy(runId, policy))?.kind ?? null,
        version: live === undefined ? null : { ordinal: live.ordinal, label: live.label },
      }
    }
    const policies: PolicyState[] = []
    for (const one of policiesOf(run)) {
      policies.push({ ...one, ...(await standing(one.name)), counts: await trainer.counts(runId, one.name) })
    }
    return {
      run,
      asked: trainerRunOf(run),
      closed: await trainer.isClosed(runId),
      incarnation: await trainer.incarnation(runId),
      counts,
      capacity: capacityOf(trainerRunOf(run), counts),
      feedStop: await trainer.feedStop(runId),
      nullStop: (await this.#parts.nullLimits.of(runId))?.refusal() ?? null,
      policies,
      ...(await standing(null)),
    }
  }

  /** From now on whoever asks speaks for the run. Throws `NOT_FOUND`, `RUN_IS_EVAL`. */
  async attach(runId: Id, o: Parameters<TrainerBook['attach']>[1]): Promise<Attached> {
    const { catalogue, trainer } = this.#parts.store
    requireNoEval(await catalogue.run(runId))
    return trainer.attach(runId, o)
  }

  /** Takes as many groups as there is room for. Groups that are there already are accepted again. Throws `RUN_CLOSED`, `RUN_NULL_SHARE`, `RUN_IS_EVAL`, `TASK_HELD_OUT`. */
  submit(runId: Id, groups: readonly SubmittedGroup[]): Promise<GroupsTaken> {
    return this.#turns.take(runId, () => this.#submit(runId, groups))
  }

  /** Opens a further round of a group, where there is room for one. Throws `RUN_FULL`, `RUN_NULL_SHARE`, `ROUND_OPEN`, `RUN_IS_EVAL`, `GROUP_INVALID`. */
  async openRound(groupId: Id, spec: GroupSpec): Promise<RoundView> {
    const { runId } = await this.#parts.store.catalogue.group(groupId)
    return this.#turns.take(runId, async () => {
      await this.#parts.nullLimits.require(runId)
      const { groups, taken } = (await this.state(runId)).capacity
      if (groups !== null && taken >= groups) {
        throw new PaddockError(
          'RUN_FULL',
          `run ${runId} has room for ${groups} groups, and there is none for a round of ${groupId}`,
        )
      }
      return this.#parts.groups.openRound(groupId, spec)
    })
  }

  /** No more groups will be asked for; what runs goes on to its end. Throws `ENGINE_PAUSED` where the run has it paused, `RUN_IS_EVAL`. */
  async close(runId: Id): Promise<void> {
    const run = await this.#parts.store.catalogue.run(runId)
    requireNoEval(run)
    const names = policiesOf(run).map(({ name }) => name)
    const { trainer } = this.#parts.store
    const said = await Promise.all((names.length === 0 ? [null] : names).map((one) => trainer.lastPolicy(runId, one)))
    if (said.some((last) => last !== null && isPaused(last)) && !(await this.#parts.store.trainer.isClosed(runId))) {
      throw new PaddockError('ENGINE_PAUSED', `run ${runId} has the engine paused`, {
        fix: 'Say which weights are live, or that moving them failed, and close the run then.',
      })
    }
    await this.#parts.store.trainer.closeRun(runId)
    await this.#parts.own.end(runId)
  }

  /** Events behind `after`, oldest first; none where there is none within `waitMs`. Throws `NOT_FOUND`, `CURSOR_AHEAD`. */
  async events(
    runId: Id,
    o: {
      readonly after: number
      readonly incarnation: number
      readonly limit: number
      readonly waitMs: number
      readonly signal: AbortSignal
    },
  ): Promise<readonly RunEvent[]> {
    const { catalogue, changes, trainer } = this.#parts.store
    await catalogue.run(runId)
    if (o.incarnation > ((await trainer.incarnation(runId)) ?? 0)) {
      throw new PaddockError('CURSOR_AHEAD', `run ${runId} has no incarnation ${o.incarnation}`)
    }
    // Each cursor was told with an event: one that is not there was lost with what the catalogue was rewound over.
    const [own] = o.after === 0 ? [] : await catalogue.runEvents(runId, { after: o.after - 1, limit: 1 })
    if (o.after > 0 && own?.seq !== o.after) {
      throw new PaddockError('CURSOR_AHEAD', `run ${runId} has no event ${o.after}`)
    }
    const found = await untilChange(
      {
        changes,
        clock: this.#clock,
        waitMs: o.waitMs,
        signal: o.signal,
        // A late verdict is told by its rollout.
        concerns: (change) => change.kind === 'rollout' || change.runId === runId,
      },
      async () => {
        const events = await catalogue.runEvents(runId, { after: o.after, limit: o.limit })
        return events.length > 0 ? events : null
      },
    )
    return found ?? []
  }

  async #submit(runId: Id, groups: readonly SubmittedGroup[]): Promise<GroupsTaken> {
    const { store } = this.#parts
    const { run, asked, closed, counts, nullStop } = await this.state(runId)
    requireNoEval(run)
    const known = new Set((await store.catalogue.groups(runId)).map(({ id }) => id))
    if (groups.some(({ id }) => !known.has(id))) {
      if (closed) throw new PaddockError('RUN_CLOSED', `run ${runId} takes no more groups`)
      if (nullStop !== null) throw nullStop
    }
    const wanted: (Omit<SubmittedGroup, 'task'> & { readonly task: Task })[] = []
    for (const one of groups) {
      const task = await taskOf(this.#parts, { id: runId, own: asked.own }, one.task)
      requireTraining(asked, one.id, task)
      if (one.spec.library !== undefined && asked.own === null) {
        throw new PaddockError('GROUP_INVALID', `The group ${one.id} cannot be: its rollouts are done elsewhere.`, {
          fix: 'Leave `library` out, or open the run with `tasks`, so that Paddock has the boxes.',
        })
      }
      wanted.push({ ...one, task })
    }
    const accepted: { id: Id; round: RoundView }[] = []
    const refused: Id[] = []
    const room = capacityOf(asked, counts)
    let { taken } = room
    for (const { id, task, promptVariant, spec, priority } of wanted) {
      const isNew = !known.has(id)
      if (isNew && room.groups !== null && taken >= room.groups) {
        refused.push(id)
        continue
      }
      const labels = { ...asked.labels, ...spec.labels }
      const group = { id, runId, task, promptVariant, spec: { ...spec, labels } }
      const round = await this.#parts.groups.open(group, priority)
      known.add(id)
      if (isNew) taken += 1
      accepted.push({ id, round })
    }
    return { accepted, refused, capacity: { groups: room.groups, taken } }
  }
}

/** A gate lets in what can be trained before it is too old: `max + 1` steps of groups. */
function capacityOf(
  { capacity, staleness, groupsPerStep }: TrainerRun,
  { running, settledUnclaimed, claimed }: HandoutCounts,
): Capacity {
  const gate = staleness.mode === 'gate' && groupsPerStep !== null ? (staleness.max + 1) * groupsPerStep : null
  const bounds = [capacity, gate].filter((bound) => bound !== null)
  return { groups: bounds.length === 0 ? null : Math.min(...bounds), taken: running + settledUnclaimed + claimed }
}

function requireTraining({ purpose }: TrainerRun, groupId: Id, { name, split }: Task): void {
  if (purpose !== 'train' || !heldOutSplits.has(split)) return
  throw new PaddockError('TASK_HELD_OUT', `group ${groupId}: task ${name} is of split ${split}`, {
    fix: 'Train on tasks of another split, or ask for purpose `collect`.',
  })
}
