import {
  type Clock,
  type Id,
  type IdMaker,
  isPaddockError,
  newId,
  PaddockError,
  type RolloutEnd,
  systemClock,
  type Task,
} from '../../core/index.ts'
import type { OpenedSession, OpenSession, Proxy } from '../../proxy/index.ts'
import {
  type GroupRecord,
  type GroupSpec,
  type RolloutRecord,
  type RolloutView,
  type RoundView,
  type RunRecord,
  type SettledRound,
  type Store,
  verdictInForce,
} from '../../trajectory/index.ts'
import { appendLate, type LateVerdict } from '../late-verdict.ts'
import { cutVerdict } from './cut.ts'
import type { SlotState } from './decide.ts'
import { GroupKeeper } from './keeper.ts'

const outsideConfig = { outside: true }

/** True for a run whose rollouts are done by somebody outside: they end when that somebody says so, and at nothing else. */
export function isOutside({ config }: RunRecord): boolean {
  return typeof config === 'object' && config !== null && 'outside' in config && config.outside === true
}

export interface OpenGroup {
  /** The caller's own; asking again with the same id is the same group. */
  readonly id: Id | null
  /** Null: a run of its own. */
  readonly runId: Id | null
  readonly name: string
  readonly task: Task
  readonly promptVariant: string
  readonly spec: GroupSpec
}

export interface OpenOutside {
  readonly groupId: Id
  /** The caller's own: asking again with the same key gives the same rollout, with a fresh session. */
  readonly key: string | null
  /** A slot whose last attempt ended as `infra` or `cancelled` gets another attempt; null: a slot of its own. */
  readonly slot: number | null
  readonly harness: string
  readonly labels: Readonly<Record<string, string>>
  readonly policy: NonNullable<OpenSession['policy']>
}

export interface OutsideRollout {
  readonly rollout: RolloutView
  readonly session: OpenedSession
}

export interface EndOutside {
  readonly end: RolloutEnd
  readonly detail: string
  /** Null: it comes later, and the group waits for it until its deadline. */
  readonly verdict: LateVerdict | null
}

export interface OutsideParts {
  readonly store: Store
  readonly proxy: Pick<Proxy, 'openSession' | 'closeSession' | 'sessionStats'>
  readonly clock?: Clock
  readonly newId?: IdMaker
}

/**
 * Groups whose rollouts somebody outside does: it opens them, ends them and brings their verdicts, and they settle as any
 * group does. Everything is in the store, so both sides may restart.
 */
export class OutsideGroups {
  readonly #store: Store
  readonly #proxy: OutsideParts['proxy']
  readonly #clock: Clock
  readonly #newId: IdMaker
  readonly #keeper: GroupKeeper
  /** Openings and ends of one group happen one after the other. */
  readonly #turns = new Map<Id, Promise<unknown>>()

  constructor({ store, proxy, clock = systemClock, newId: id = newId }: OutsideParts) {
    this.#store = store
    this.#proxy = proxy
    this.#clock = clock
    this.#newId = id
    this.#keeper = new GroupKeeper({
      store,
      work: {
        states: (round) => this.#states(round),
        topUp: () => Promise.resolve(false),
        stop: (round, why) => this.#stop(round, why),
        compare: () => Promise.resolve(),
      },
      onSettled: () => undefined,
      // The next call that comes to the group meets the same fault, and tells it.
      onFailure: () => undefined,
    })
  }

  /** Goes on with the groups of earlier processes, whose deadlines count on. For an owner, once, at its start. */
  async resume(): Promise<void> {
    for (const run of (await this.#store.catalogue.runs(lookBackRuns)).filter(isOutside)) {
      for (const { id } of await this.#store.catalogue.groups(run.id)) await this.#keeper.advance(id)
    }
  }

  /** Throws `STORE_CONFLICT` where the id stands for something else, `NOT_FOUND` for an unknown run. */
  async openGroup(asked: OpenGroup): Promise<{ readonly group: GroupRecord; readonly round: RoundView }> {
    const { catalogue } = this.#store
    const { task, promptVariant, spec } = asked
    const known = asked.id === null ? null : await found(catalogue.group(asked.id))
    const group = known ?? (await this.#putGroup(asked))
    const [first] = await catalogue.rounds(group.id)
    const same = group.taskDigest === task.digest && group.promptVariant === promptVariant
    if (!same || (first !== undefined && JSON.stringify(first.spec) !== JSON.stringify(spec))) {
      throw new PaddockError('STORE_CONFLICT', `another group stands under ${group.id}`)
    }
    await catalogue.openRound({ groupId: group.id, runId: group.runId, round: 0, spec })
    await this.#keeper.advance(group.id)
    return { group, round: await this.#round(group.id) }
  }

  /** Opens a further round. Throws `ROUND_OPEN` where one goes on. */
  async openRound(groupId: Id, spec: GroupSpec): Promise<RoundView> {
    const { catalogue } = this.#store
    const group = await this.#outsideGroup(groupId)
    const round = (await catalogue.rounds(groupId)).length
    await catalogue.openRound({ groupId, runId: group.runId, round, spec })
    await this.#keeper.advance(groupId)
    return this.#round(groupId)
  }

  /** Throws `ROUND_SETTLED` where no round of the group goes on, `STORE_CONFLICT` for a slot that is not free. */
  openRollout(asked: OpenOutside): Promise<OutsideRollout> {
    return this.#inTurn(asked.groupId, () => this.#openRollout(asked))
  }

  async #openRollout(asked: OpenOutside): Promise<OutsideRollout> {
    const { groupId, key, slot, labels, policy } = asked
    const group = await this.#outsideGroup(groupId)
    const round = await this.#round(groupId)
    const before = await this.#store.catalogue.rollouts({ groupId })
    const rollout =
      slot === null ? await this.#inOwnSlot(group, asked, before) : await this.#again(round, asked, before)
    const { horizon, labels: shared } = round.spec
    const budget = policy.budget ?? { maxCalls: null, maxSampledTokens: null, maxWallMs: null }
    const session = await this.#proxy.openSession({
      rolloutId: rollout.id,
      role: 'agent',
      policy:
        horizon === null
          ? policy
          : { ...policy, budget: { ...budget, maxCalls: Math.min(horizon, budget.maxCalls ?? horizon) } },
      labels: { ...shared, ...labels, ...(key === null ? {} : { key }) },
    })
    await this.#keeper.advance(groupId)
    return { rollout, session }
  }

  /**
   * Ends a rollout: its sessions are closed, its verdict, if there is one, stands before its end. Idempotent. Resolves with
   * the round if it has settled by that. Throws `STORE_CONFLICT` where it has ended otherwise, `VERDICT_REFUSED`.
   */
  async end(
    rolloutId: Id,
    { end, detail, verdict }: EndOutside,
  ): Promise<{ readonly rollout: RolloutView; readonly settled: SettledRound | null }> {
    const { catalogue } = this.#store
    const rollout = await catalogue.rollout(rolloutId)
    await this.#outsideGroup(rollout.groupId)
    await this.#inTurn(rollout.groupId, () => this.#end(rolloutId, { end, detail, verdict }))
    const settled = await this.#keeper.advance(rollout.groupId)
    return { rollout: await catalogue.rollout(rolloutId), settled }
  }

  /** Nobody wants more of a group: what goes on is stopped and kept, and its round settles with what there is. */
  async cancel(groupId: Id): Promise<SettledRound | null> {
    await this.#outsideGroup(groupId)
    return this.#keeper.advance(groupId, true)
  }

  /** A verdict came for a rollout. */
  async judged(rolloutId: Id): Promise<void> {
    const { groupId } = await this.#store.catalogue.rollout(rolloutId)
    await this.#keeper.advance(groupId)
  }

  close(): void {
    this.#keeper.close()
  }

  async #putGroup({ id, runId, name, task, promptVariant }: OpenGroup): Promise<GroupRecord> {
    const { catalogue } = this.#store
    const at = this.#clock.now()
    await catalogue.putTask(task)
    if (runId !== null && !isOutside(await catalogue.run(runId))) throw notOutside(`run ${runId}`)
    const run = runId ?? this.#newId()
    if (runId === null) await catalogue.putRun({ id: run, name, createdAt: at, config: outsideConfig })
    const group = { id: id ?? this.#newId(), runId: run, taskDigest: task.digest, promptVariant, createdAt: at }
    await catalogue.putGroup(group)
    return group
  }

  async #inOwnSlot(
    group: GroupRecord,
    { key, harness, labels }: OpenOutside,
    before: readonly RolloutView[],
  ): Promise<RolloutView> {
    const [slot] = await this.#store.catalogue.openSlots(group.id, [{ jobId: this.#newId(), key }])
    const last = before.findLast((one) => one.slot === slot?.slot)
    if (slot === undefined || last !== undefined) return last ?? never()
    return this.#begin({ runId: group.runId, groupId: group.id, slot: slot.slot, attempt: 0, harness }, labels)
  }

  async #again(
    round: RoundView,
    { groupId, slot, harness, labels }: OpenOutside,
    before: readonly RolloutView[],
  ): Promise<RolloutView> {
    const last = before.findLast((one) => one.slot === slot)
    if (last === undefined) throw new PaddockError('NOT_FOUND', `group ${groupId} has no slot ${slot ?? ''}`)
    if (round.settled !== null || !round.slots.some((one) => one.slot === slot)) {
      throw new PaddockError('ROUND_SETTLED', `the round of slot ${slot ?? ''} has settled`)
    }
    if (last.end !== 'infra' && last.end !== 'cancelled') {
      throw new PaddockError(
        'STORE_CONFLICT',
        `slot ${last.slot} has an attempt that ${last.end === null ? 'goes on' : 'counts'}`,
      )
    }
    return this.#begin({ runId: last.runId, groupId, slot: last.slot, attempt: last.attempt + 1, harness }, labels)
  }

  async #begin(about: Omit<RolloutRecord, 'id' | 'createdAt'>, labels: OpenOutside['labels']): Promise<RolloutView> {
    const { catalogue } = this.#store
    const at = this.#clock.now()
    const record = { id: this.#newId(), ...about, createdAt: at }
    await catalogue.putRollout(record)
    await catalogue.startRollout(record.id, at)
    const round = await this.#round(about.groupId)
    for (const [name, value] of Object.entries({ ...round.spec.labels, ...labels }))
      await catalogue.label(record.id, name, value)
    return catalogue.rollout(record.id)
  }

  async #end(rolloutId: Id, { end, detail, verdict }: EndOutside): Promise<void> {
    const { catalogue, recorder } = this.#store
    const rollout = await catalogue.rollout(rolloutId)
    if (rollout.end !== null) {
      if (rollout.end === end && rollout.endDetail === detail) return
      throw new PaddockError('STORE_CONFLICT', `rollout ${rolloutId} has ended as ${rollout.end}`)
    }
    for (const { id } of await recorder.sessions({ rolloutId })) {
      await this.#proxy.closeSession(id)
      for (const cause of this.#taintsOf(id)) await catalogue.taint(rolloutId, cause)
    }
    const cut = await cutVerdict(catalogue, { groupId: rollout.groupId, slot: rollout.slot, end })
    if (cut !== null) {
      const supersedes = verdictInForce(rollout.verdicts)?.id ?? null
      const at = this.#clock.now()
      await catalogue.appendVerdict({
        ...cut,
        id: this.#newId(),
        rolloutId: rollout.id,
        at,
        by: 'verifier',
        supersedes,
      })
    } else if (verdict !== null) {
      await appendLate(this.#store, rollout.id, verdict, { clock: this.#clock, newId: this.#newId })
    }
    await catalogue.endRollout(rollout.id, this.#clock.now(), end, detail)
  }

  /** A session of an earlier process that nobody came back to has none that were not stored. */
  #taintsOf(sessionId: Id): readonly string[] {
    try {
      return this.#proxy.sessionStats(sessionId).taints
    } catch (error) {
      if (isPaddockError(error) && error.code === 'SESSION_UNKNOWN') return []
      throw error
    }
  }

  #inTurn<T>(groupId: Id, work: () => Promise<T>): Promise<T> {
    const turn = (this.#turns.get(groupId) ?? Promise.resolve()).then(work, work)
    this.#turns.set(groupId, turn)
    return turn
  }

  async #states({ groupId, slots }: RoundView): Promise<readonly SlotState[]> {
    const rollouts = await this.#store.catalogue.rollouts({ groupId })
    return slots.map(({ slot }) => {
      const rollout = rollouts.findLast((one) => one.slot === slot) ?? null
      return { slot, rollout, over: (rollout?.end ?? null) !== null, verifying: false, verdictFromOutside: true }
    })
  }

  async #stop(round: RoundView, why: string): Promise<void> {
    for (const { rollout } of await this.#states(round)) {
      if (rollout === null || rollout.end !== null) continue
      const how = { end: 'cancelled', detail: `its group stopped early (${why})`, verdict: null } as const
      await this.#end(rollout.id, how).catch((error: unknown) => {
        // Whoever does it ended it meanwhile: then that is how it ended.
        if (!isPaddockError(error) || error.code !== 'STORE_CONFLICT') throw error
      })
    }
  }

  async #round(groupId: Id): Promise<RoundView> {
    return (await this.#store.catalogue.rounds(groupId)).at(-1) ?? never()
  }

  async #outsideGroup(groupId: Id): Promise<GroupRecord> {
    const group = await this.#store.catalogue.group(groupId)
    if (!isOutside(await this.#store.catalogue.run(group.runId))) throw notOutside(`group ${groupId}`)
    return group
  }
}

/** How far back {@link OutsideGroups.resume} looks. */
const lookBackRuns = 50

async function found<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked
  } catch (error) {
    if (isPaddockError(error) && error.code === 'NOT_FOUND') return null
    throw error
  }
}

function notOutside(what: string): PaddockError {
  return new PaddockError('GROUP_INSIDE', `${what} is run by Paddock itself`)
}

function never(): never {
  throw new PaddockError('INTERNAL', 'a group lost its round')
}
