import { type Id, KeyedTurns } from '../../core/index.ts'
import {
  type Catalogue,
  ownBucket,
  type Recorder,
  type RoundView,
  type SettledMember,
  type SettledRound,
} from '../../trajectory/index.ts'
import { type Decision, decide, isWorking, memberOf, type Sampled, type SlotState } from './decide.ts'

/** How the slots of a group are filled. */
export interface SlotWork {
  states(round: RoundView): Promise<readonly SlotState[]>
  /** Opens further slots. False where only others can open them. */
  topUp(round: RoundView, count: number): Promise<boolean>
  /** Stops what is not over. What ends by that is told by {@link GroupKeeper.advance}. */
  stop(round: RoundView, why: StopReason): Promise<void>
  /** Before a round settles: rewards that only a comparison of its members gives. */
  compare(round: RoundView): Promise<void>
}

export type StopReason = Extract<Decision, { kind: 'stop' }>['why']

export interface KeeperParts {
  readonly store: {
    readonly catalogue: Pick<Catalogue, 'rollout' | 'rounds' | 'settleRound'>
    readonly recorder: Pick<Recorder, 'sessions' | 'session'>
  }
  readonly work: SlotWork
  readonly onSettled: (settled: SettledRound) => void
  /** What a deadline's wake-up failed of. */
  readonly onFailure: (error: unknown) => void
}

/**
 * Brings the rounds of groups forward: tops up, stops, settles. It keeps nothing that the store does not have, so another
 * process goes on where this one ended. Settling itself is the store's: the first list stands.
 */
export class GroupKeeper {
  readonly #parts: KeeperParts
  /** One step at a time per group. */
  readonly #turns = new KeyedTurns<Id>()
  /** Steps that have not begun: whoever asks for one more meanwhile is answered by these, which will see what happened. */
  readonly #next = new Map<string, Promise<SettledRound | null>>()
  readonly #timers = new Map<Id, NodeJS.Timeout>()
  /** When a group may be looked at again, as time of this process. */
  readonly #rests = new Map<Id, number>()
  /** Ends the rest that goes on. */
  readonly #resting = new Map<Id, () => void>()
  #closed = false

  constructor(parts: KeeperParts) {
    this.#parts = parts
  }

  /**
   * Something happened to a member, or time went on. Resolves with the settled round if the group has one and none goes
   * on. `cancelled`: nobody wants more of it. Throws `STORE_*`.
   */
  advance(groupId: Id, cancelled = false): Promise<SettledRound | null> {
    const key = `${groupId} ${cancelled}`
    const next =
      this.#next.get(key) ??
      this.#turns.take(groupId, async () => {
        if (!cancelled) await this.#rest(groupId)
        this.#next.delete(key)
        const at = performance.now()
        const settled = await this.#advance(groupId, cancelled)
        const tookMs = performance.now() - at
        if (settled !== null || tookMs < shortMs) this.#rests.delete(groupId)
        else this.#rests.set(groupId, performance.now() + Math.min(restsPerLook * tookMs, longestRestMs))
        return settled
      })
    this.#next.set(key, next)
    // Who wants no more of it does not wait for its rest.
    if (cancelled) this.#resting.get(groupId)?.()
    return next
  }

  /** No deadline wakes it any more. */
  close(): void {
    this.#closed = true
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
    for (const wake of this.#resting.values()) wake()
  }

  /** A look reads all members, and each member that ends asks for one: so looks at a large group are a part of the time, whatever their number. */
  async #rest(groupId: Id): Promise<void> {
    const leftMs = (this.#rests.get(groupId) ?? 0) - performance.now()
    if (leftMs <= 0 || this.#closed) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, leftMs)
      this.#resting.set(groupId, () => {
        clearTimeout(timer)
        resolve()
      })
    })
    this.#resting.delete(groupId)
  }

  async #advance(groupId: Id, cancelled: boolean): Promise<SettledRound | null> {
    const { work, store } = this.#parts
    let compared = false
    for (;;) {
      const round = (await store.catalogue.rounds(groupId)).at(-1)
      if (round === undefined) return null
      if (round.settled !== null) {
        this.#parts.onSettled(round.settled)
        return round.settled
      }
      const slots = await work.states(round)
      const decision = decide(round, slots, cancelled)
      switch (decision.kind) {
        case 'wait':
          this.#wakeAtDeadline(round)
          return null
        case 'top_up':
          if (await work.topUp(round, decision.count)) break
          this.#wakeAtDeadline(round)
          return null
        case 'stop':
          await work.stop(round, decision.why)
          if ((await work.states(round)).some(isWorking)) return null
          break
        case 'settle': {
          if (!compared) {
            compared = true
            await work.compare(round)
            break
          }
          const settled = await store.catalogue.settleRound(await this.#list(round, slots, decision))
          // Verifications that are too late would keep the places of those that are in time.
          const late = decision.stoppedBy === 'deadline' ? lateSlots(round, slots) : []
          if (late.length > 0) await work.stop({ ...round, slots: late }, 'deadline')
          clearTimeout(this.#timers.get(groupId))
          this.#parts.onSettled(settled)
          return settled
        }
      }
    }
  }

  async #list(
    round: RoundView,
    slots: readonly SlotState[],
    { state, stoppedBy, carried }: Extract<Decision, { kind: 'settle' }>,
  ): Promise<SettledRound> {
    const { groupId, runId, spec } = round
    // Under `carry` only somebody else ends a member.
    const stopped = stoppedBy !== null && stoppedBy !== 'cancelled' && !spec.carry
    const sampled = async ({ rollout }: SlotState): Promise<Sampled> =>
      rollout === null ? nothing : sampledBy(this.#parts.store.recorder, rollout.id)
    const ended = slots.filter(({ slot }) => !carried.has(slot))
    const goOn = slots.filter(({ slot }) => carried.has(slot))
    const found = ended.map(async (one) => memberOf(one, { spec, stopped, sampled: await sampled(one) }))
    const own = (await Promise.all(found)).filter((member) => member !== null)
    const members = [...(await this.#lateMembers(round)), ...own]
    const censored = members.filter(({ out }) => out === 'censored')
    return {
      groupId,
      runId,
      round: round.round,
      state,
      stoppedBy,
      members,
      usable: members.filter(({ out }) => out === null).length,
      censored: {
        members: censored.length,
        sampledTokens: censored.reduce((sum, { sampledTokens }) => sum + sampledTokens, 0),
      },
      carried: {
        members: goOn.length,
        sampledTokens: (await Promise.all(goOn.map(sampled))).reduce((sum, one) => sum + one.sampledTokens, 0),
      },
      neverBegan: ended.length - own.length,
    }
  }

  /** Members of earlier rounds whose number came too late for these: this round is the one in which they count. */
  async #lateMembers({ groupId, round, spec }: RoundView): Promise<readonly SettledMember[]> {
    const { catalogue } = this.#parts.store
    const listed = (await catalogue.rounds(groupId)).flatMap(({ settled }) => settled?.members ?? [])
    const late: SettledMember[] = []
    for (const member of listed.filter(({ out }) => out === 'late')) {
      if (round === 0 || [...listed, ...late].some((one) => one.rolloutId === member.rolloutId && one.out === null))
        continue
      const rollout = await catalogue.rollout(member.rolloutId)
      const state = { slot: member.slot, rollout, over: true, verifying: false, verdictFromOutside: true }
      const { sampledTokens, turns = 0, weights = [] } = member
      const now = memberOf(state, { spec, stopped: false, sampled: { sampledTokens, turns, weights } })
      if (now?.out === null) late.push(now)
    }
    return late
  }

  /** The timer is a hint: whether the deadline is there is decided by the database's clock. */
  #wakeAtDeadline({ groupId, spec, ageMs }: RoundView): void {
    clearTimeout(this.#timers.get(groupId))
    if (spec.deadlineMs === null || this.#closed) return
    const timer = setTimeout(
      () => {
        this.#timers.delete(groupId)
        this.advance(groupId).catch((error: unknown) => this.#parts.onFailure(error))
      },
      Math.max(1, Math.min(spec.deadlineMs - ageMs, longestTimerMs)),
    )
    timer.unref()
    this.#timers.set(groupId, timer)
  }
}

/** Slots of a round that only wait for a verdict. */
function lateSlots(round: RoundView, states: readonly SlotState[]): RoundView['slots'] {
  const late = new Set(states.flatMap(({ slot, over, verifying }) => (verifying && !over ? [slot] : [])))
  return round.slots.filter(({ slot }) => late.has(slot))
}

/** A look this short, as at any group of a few dozen members, is followed by no rest. */
const shortMs = 20
/** So long as many looks a group rests after each. */
const restsPerLook = 9
const longestRestMs = 2000

/** Longer ones overflow in Node and fire at once. */
const longestTimerMs = 2 ** 31 - 1

const nothing: Sampled = { sampledTokens: 0, turns: 0, weights: [] }

async function sampledBy(recorder: KeeperParts['store']['recorder'], rolloutId: Id): Promise<Sampled> {
  let sampledTokens = 0
  const calls = new Set<Id | null>()
  const weights = new Set<string>()
  for (const session of await recorder.sessions({ rolloutId })) {
    if (ownBucket(session) !== null) continue
    const { segments } = await recorder.session(session.id, { bodies: [] })
    for (const { origin, tokens, callId, policySpans } of segments) {
      if (origin !== 'sampled') continue
      sampledTokens += tokens.length
      calls.add(callId)
      for (const { policy } of policySpans) if (policy.weightVersion !== null) weights.add(policy.weightVersion)
    }
  }
  return { sampledTokens, turns: calls.size, weights: [...weights] }
}
