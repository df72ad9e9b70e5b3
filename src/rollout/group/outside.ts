import {
  type Clock,
  type Id,
  type IdMaker,
  isPaddockError,
  KeyedTurns,
  newId,
  PaddockError,
  type RolloutEnd,
  systemClock,
  type Task,
} from '../../core/index.ts'
import type { OpenedSession, OpenSession, Proxy, SessionStats } from '../../proxy/index.ts'
import {
  callFaultsOf,
  carriedSlots,
  type GroupRecord,
  type GroupSpec,
  type RolloutRecord,
  type RolloutView,
  type RoundView,
  type RunRecord,
  type SettledRound,
  type SlotRecord,
  type Store,
  verdictInForce,
} from '../../trajectory/index.ts'
import { injectLabels } from './spec.ts'
import { orNull, recordGroup } from './same-group.ts'
import { appendLate, type LateVerdict } from '../late-verdict.ts'
import type { NullLimits } from './null-limit.ts'
import { outsideCutVerdict } from './cut.ts'
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
  /** Null: the rollout has ended, and no call comes after its end. */
  readonly session: OpenedSession | null
  /** Of several policies each has one, by name, the first the session above; empty: there is one policy. */
  readonly sessions: ReadonlyMap<string, OpenedSession>
}

export interface EndOutside {
  readonly end: RolloutEnd
  readonly detail: string
  /** Null: it comes later, and the group waits for it until its deadline. */
  readonly verdict: LateVerdict | null
}

export interface OutsideParts {
  readonly store: Store
  readonly nullLimits: NullLimits
  readonly proxy: Pick<Proxy, 'openSession' | 'closeSession' | 'sessionStats' | 'policies'>
  readonly clock?: Clock
  readonly newId?: IdMaker
}

/**
 * Groups whose rollouts somebody outside does: it opens them, ends them and brings their verdicts, and they settle as any
 * group does. Everything is in the store, so both sides may restart.
 */
export class OutsideGroups {
  readonly #store: Store
  readonly #nullLimits: NullLimits
  readonly #proxy: OutsideParts['proxy']
  readonly #clock: Clock
  readonly #newId: IdMaker
  readonly #keeper: GroupKeeper
  /** Openings and ends of one group happen one after the other. */
  readonly #turns = new KeyedTurns<Id>()

  constructor({ store, nullLimits, proxy, clock = systemClock, newId: id = newId }: OutsideParts) {
    this.#store = store
    this.#nullLimits = nullLimits
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
      // A fault of the store meets the next call too.
      onSettled: (settled) => void nullLimits.settled(settled).catch(() => undefined),
      // The next call that comes to the group meets the same fault, and tells it.
      onFailure: () => undefined,
    })
  }

  /** Goes on with the groups of earlier processes, whose deadlines count on. For an owner, once, at its start. */
  async resume(): Promise<void> {
    for (const run of (await this.#store.catalogue.unfinishedRuns('all')).filter(isOutside)) {
      for (const { id } of await this.#store.catalogue.groups(run.id)) await this.#keeper.advance(id)
    }
  }

  /** Throws `STORE_CONFLICT` where the id stands for something else, `NOT_FOUND` for an unknown run. */
  async openGroup(asked: OpenGroup): Promise<{ readonly group: GroupRecord; readonly round: RoundView }> {
    const { catalogue } = this.#store
    const { task, promptVariant, spec } = asked
    const id = asked.id ?? this.#newId()
    const runId = asked.runId ?? (await orNull(catalogue.group(id)))?.runId ?? (await this.#ownRun(asked.name))
    if (!isOutside(await catalogue.run(runId))) throw notOutside(`run ${runId}`)
    const group = await recordGroup(catalogue, { id, runId, task, promptVariant, spec }, this.#clock.now())
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

  /** Throws `ROUND_SETTLED` where no round of the group goes on, `STORE_CONFLICT` for a slot that is not free, `RUN_NULL_SHARE` where a new one would begin. */
  openRollout(asked: OpenOutside): Promise<OutsideRollout> {
    return this.#turns.take(asked.groupId, () => this.#openRollout(asked))
  }

  async #openRollout(asked: OpenOutside): Promise<OutsideRollout> {
    const { groupId, key, slot, labels, policy } = asked
    const group = await this.#outsideGroup(groupId)
    const round = await this.#round(groupId)
    const rollout = slot === null ? await this.#inOwnSlot(group, asked) : await this.#again(round, asked, slot)
    if (rollout.end !== null) return { rollout, session: null, sessions: new Map() }
    const { horizon, labels: shared, inject = policy.inject ?? [] } = round.spec
    const own = inject.length === 0 ? policy : { ...policy, inject }
    const budget = policy.budget ?? { maxCalls: null, maxSampledTokens: null, maxWallMs: null }
    const bounded =
      horizon === null
        ? own
        : { ...own, budget: { ...budget, maxCalls: Math.min(horizon, budget.maxCalls ?? horizon) } }
    const open = (name: string | undefined): Promise<OpenedSession> =>
      this.#proxy.openSession({
        rolloutId: rollout.id,
        role: 'agent',
        policy: name === undefined ? bounded : { ...bounded, name },
        labels: { ...shared, ...injectLabels(round.spec), ...labels, ...(key === null ? {} : { key }) },
      })
    const [first, ...others] = this.#proxy.policies.map(({ name }) => name)
    const session = await open(first)
    const sessions = new Map(first === undefined ? [] : [[first, session]])
    for (const name of others) sessions.set(name, await open(name))
    await this.#keeper.advance(groupId)
    return { rollout, session, sessions }
  }

  /**
   * Ends a rollout: its sessions are closed, its verdict, if there is one, stands before its end. Idempotent. Resolves with
   * the round if it has settled by that. Throws `STORE_CONFLICT` where it has ended otherwise, or without this verdict, `VERDICT_REFUSED`.
   */
  async end(
    rolloutId: Id,
    { end, detail, verdict }: EndOutside,
  ): Promise<{ readonly rollout: RolloutView; readonly settled: SettledRound | null }> {
    const { catalogue } = this.#store
    const rollout = await catalogue.rollout(rolloutId)
    await this.#outsideGroup(rollout.groupId)
    await this.#turns.take(rollout.groupId, () => this.#end(rolloutId, { end, detail, verdict }))
    await this.#nullLimits.look(rolloutId)
    const settled = await this.#keeper.advance(rollout.groupId)
    return { rollout: await catalogue.rollout(rolloutId), settled }
  }

  /** Nobody wants more of a rollout: it ends as `cancelled`, unless it has ended. */
  async stopRollout(rolloutId: Id, why: string): Promise<void> {
    await this.end(rolloutId, { end: 'cancelled', detail: why, verdict: null }).catch(unlessEnded)
  }

  /** Nobody wants more of a group: what goes on is stopped and kept, and its round settles with what there is. */
  async cancel(groupId: Id): Promise<SettledRound | null> {
    await this.#outsideGroup(groupId)
    const settled = await this.#keeper.advance(groupId, true)
    if (settled !== null) await this.#stopSlots(groupId, carriedSlots(await this.#round(groupId)), 'cancelled')
    return settled
  }

  /** A verdict came for a rollout. */
  async judged(rolloutId: Id): Promise<void> {
    const { groupId } = await this.#store.catalogue.rollout(rolloutId)
    await this.#keeper.advance(groupId)
  }

  close(): void {
    this.#keeper.close()
  }

  async #ownRun(name: string): Promise<Id> {
    const id = this.#newId()
    await this.#store.catalogue.putRun({ id, name, createdAt: this.#clock.now(), config: outsideConfig })
    return id
  }

  async #inOwnSlot(group: GroupRecord, { key, harness, labels }: OpenOutside): Promise<RolloutView> {
    const { slots } = await this.#round(group.id)
    if (key === null || !slots.some((one) => one.key === key)) await this.#nullLimits.require(group.runId)
    const [slot] = await this.#store.catalogue.openSlots(group.id, [{ jobId: this.#newId(), key }])
    if (slot === undefined) return never()
    const tries = await this.#store.catalogue.rollouts({ groupId: group.id, slots: [slot.slot] })
    const last = tries.at(-1)
    if (last !== undefined) {
      if (tries.some((one) => one.harness === harness)) return last
      throw new PaddockError('STORE_CONFLICT', `the key ${key} is of a rollout of ${last.harness}, not of ${harness}`, {
        fix: 'Give each rollout a key of its own.',
      })
    }
    return this.#begin({ runId: group.runId, groupId: group.id, slot: slot.slot, attempt: 0, harness }, labels)
  }

  async #again(round: RoundView, { groupId, key, harness, labels }: OpenOutside, slot: number): Promise<RolloutView> {
    const last = await this.#lastOf(groupId, slot)
    if (last === undefined) throw new PaddockError('NOT_FOUND', `group ${groupId} has no slot ${slot}`)
    if (round.settled !== null || !round.slots.some((one) => one.slot === slot)) {
      throw new PaddockError('ROUND_SETTLED', `the round of slot ${slot} has settled`)
    }
    // Asked for again under its key: the answer was lost.
    if (last.end === null && key !== null && (await this.#isOpenedWith(last.id, key))) return last
    if (last.end !== 'infra' && last.end !== 'cancelled') {
      throw new PaddockError(
        'STORE_CONFLICT',
        `slot ${last.slot} has an attempt that ${last.end === null ? 'goes on' : 'counts'}`,
      )
    }
    await this.#nullLimits.require(last.runId)
    return this.#begin({ runId: last.runId, groupId, slot: last.slot, attempt: last.attempt + 1, harness }, labels)
  }

  async #isOpenedWith(rolloutId: Id, key: string): Promise<boolean> {
    const sessions = await this.#store.recorder.sessions({ rolloutId })
    return sessions.some(({ labels }) => labels['key'] === key)
  }

  async #lastOf(groupId: Id, slot: number): Promise<RolloutView | undefined> {
    return (await this.#store.catalogue.rollouts({ groupId, slots: [slot] })).at(-1)
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
      if (rollout.end === end && rollout.endDetail === detail) return requireSaid(rollout, verdict)
      throw new PaddockError('STORE_CONFLICT', `rollout ${rolloutId} has ended as ${rollout.end}`)
    }
    await this.#closeSessions(rolloutId)
    const { groupId, slot } = rollout
    const cut = await outsideCutVerdict({ catalogue, recorder }, { rolloutId, groupId, slot, end })
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

  /** Closes the sessions of a rollout that ends, and taints it for the faults that they met. */
  async #closeSessions(rolloutId: Id): Promise<void> {
    const { catalogue, recorder } = this.#store
    const agents: Pick<SessionStats, 'unsound' | 'hasSound'>[] = []
    for (const { id, role } of await recorder.sessions({ rolloutId })) {
      // A probe is the trainer's, and goes on.
      if (role === 'probe') continue
      await this.#proxy.closeSession(id)
      const faults = await this.#faultsOf(id)
      for (const cause of faults.taints) await catalogue.taint(rolloutId, cause)
      if (role === 'agent') agents.push(faults)
    }
    if (agents.some(({ hasSound }) => hasSound)) return
    const unsound = agents.find((one) => one.unsound !== null)?.unsound
    if (unsound != null) await catalogue.taint(rolloutId, unsound)
  }

  /** The proxy has forgotten a session of an earlier process that no request continued: its log is read. */
  async #faultsOf(sessionId: Id): Promise<Pick<SessionStats, 'taints' | 'unsound' | 'hasSound'>> {
    try {
      return this.#proxy.sessionStats(sessionId)
    } catch (error) {
      if (!isPaddockError(error) || error.code !== 'SESSION_UNKNOWN') throw error
      const { causes, unsound, hasSound } = callFaultsOf(await this.#store.recorder.session(sessionId, { bodies: [] }))
      return { taints: causes, unsound, hasSound }
    }
  }

  async #states({ groupId, slots }: Pick<RoundView, 'groupId' | 'slots'>): Promise<readonly SlotState[]> {
    const rollouts = await this.#store.catalogue.rollouts({ groupId, slots: slots.map(({ slot }) => slot) })
    return slots.map(({ slot }) => {
      const rollout = rollouts.findLast((one) => one.slot === slot) ?? null
      return { slot, rollout, over: (rollout?.end ?? null) !== null, verifying: false, verdictFromOutside: true }
    })
  }

  #stop({ groupId, slots }: RoundView, why: string): Promise<void> {
    return this.#stopSlots(groupId, slots, why)
  }

  async #stopSlots(groupId: Id, slots: readonly SlotRecord[], why: string): Promise<void> {
    for (const { rollout } of await this.#states({ groupId, slots })) {
      if (rollout === null || rollout.end !== null) continue
      const how = { end: 'cancelled', detail: `its group stopped early (${why})`, verdict: null } as const
      await this.#end(rollout.id, how).catch(unlessEnded)
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

/** A number that comes with a second end would be lost. What a cut is worth is its group's, whoever says another number. */
function requireSaid({ id, verdicts }: RolloutView, verdict: LateVerdict | null): void {
  if (verdict === null || typeof verdict.reward !== 'number') return
  const isSaid = verdicts.some(
    ({ reward, verifier }) =>
      verifier.id.startsWith('cut/') || (verifier.id === `late/${verdict.source}` && reward === verdict.reward),
  )
  if (isSaid) return
  throw new PaddockError('STORE_CONFLICT', `rollout ${id} has ended, and not with this verdict`, {
    fix: `What is known later is a verdict of its own: POST /rl/v1/rollouts/${id}/verdict.`,
  })
}

/** Whoever does it ended it meanwhile: then that is how it ended. */
function unlessEnded(error: unknown): void {
  if (!isPaddockError(error) || error.code !== 'STORE_CONFLICT') throw error
}

function notOutside(what: string): PaddockError {
  return new PaddockError('GROUP_INSIDE', `${what} is run by Paddock itself`)
}

function never(): never {
  throw new PaddockError('INTERNAL', 'a group lost its round')
}
