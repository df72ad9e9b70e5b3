import { present } from '../../core/index.ts'
import {
  cutOf,
  type GroupSpec,
  type MemberOut,
  passReward,
  type RolloutView,
  type RoundView,
  type SettledMember,
  type StoppedBy,
  verdictInForce,
} from '../../trajectory/index.ts'

/** A slot of a round that goes on. */
export interface SlotState {
  readonly slot: number
  /** Its last attempt; null: none has begun. */
  readonly rollout: RolloutView | null
  /** No further attempt follows. */
  readonly over: boolean
  /** Its agent is done, and a verifier works on it. */
  readonly verifying: boolean
  /** A verdict comes from outside, so that none yet is a pending one. */
  readonly verdictFromOutside: boolean
}

/** What a group does next. */
export type Decision =
  | { readonly kind: 'wait' }
  | { readonly kind: 'top_up'; readonly count: number }
  /** Those that are not over are stopped. */
  | { readonly kind: 'stop'; readonly why: StoppedBy }
  | {
      readonly kind: 'settle'
      readonly state: 'settled' | 'failed'
      readonly stoppedBy: StoppedBy | null
      /** Slots that go on into the next round. */
      readonly carried: ReadonlySet<number>
    }

/**
 * Decides over a round from what is recorded alone, so that whoever takes a run up after a crash decides the same.
 * `cancelled`: somebody wants no more of the group.
 */
export function decide(
  round: Pick<RoundView, 'spec' | 'ageMs'>,
  slots: readonly SlotState[],
  cancelled = false,
): Decision {
  const { spec, ageMs } = round
  const working = slots.filter(({ over }) => !over)
  const rewards = slots.flatMap((one) =>
    one.over && outOf(one, false) === null ? [verdictInForce(one.rollout?.verdicts ?? [])?.reward ?? 0] : [],
  )
  const usable = rewards.length
  const pending = slots.filter((one) => one.over && isPending(one)).length
  const why = stopOf(spec, { rewards, ageMs, cancelled })
  const settle = (stoppedBy: StoppedBy | null, carried: ReadonlySet<number> = new Set()): Decision => ({
    kind: 'settle',
    state: usable >= spec.minUsable ? 'settled' : 'failed',
    stoppedBy,
    carried,
  })
  if (why !== null) {
    const goOn = slots.filter(isWorking)
    if (goOn.length > 0 && spec.carry && why !== 'cancelled') return settle(why, new Set(goOn.map(({ slot }) => slot)))
    if (goOn.length > 0) return { kind: 'stop', why }
    const whole =
      slots.length >= spec.n &&
      slots.every((one) => one.over && !isPending(one) && one.rollout !== null && one.rollout.end !== 'cancelled')
    return settle(whole ? null : why)
  }
  const missing = spec.n - usable - pending - working.length
  const left = spec.n + spec.over + spec.topUp - slots.length
  if (missing > 0 && left > 0) return { kind: 'top_up', count: Math.min(missing, left) }
  if (working.length > 0 || pending > 0) return { kind: 'wait' }
  return settle(null)
}

function stopOf(
  { stopWhen, minUsable, deadlineMs }: GroupSpec,
  now: { readonly rewards: readonly number[]; readonly ageMs: number; readonly cancelled: boolean },
): StoppedBy | null {
  if (now.cancelled) return 'cancelled'
  if (stopWhen.kind === 'usable' && now.rewards.length >= stopWhen.count) return 'usable'
  if (now.rewards.length >= minUsable) {
    if (stopWhen.kind === 'any_pass' && now.rewards.some((reward) => reward >= passReward)) return 'any_pass'
    if (stopWhen.kind === 'variance' && new Set(now.rewards).size > 1) return 'variance'
  }
  return deadlineMs !== null && now.ageMs >= deadlineMs ? 'deadline' : null
}

function isPending({ rollout, verdictFromOutside }: SlotState): boolean {
  if (rollout === null || rollout.end === null || rollout.end === 'infra' || rollout.end === 'cancelled') return false
  const verdict = verdictInForce(rollout.verdicts)
  return verdict === null ? verdictFromOutside : verdict.status === 'pending'
}

/** Whether a round that stops still waits for this slot: one that is only being verified is late instead. */
export function isWorking({ over, verifying }: SlotState): boolean {
  return !over && !verifying
}

/** Why a member that is over has no part; null: usable. `stopped`: its group stopped before all members were done. */
export function outOf(one: SlotState, stopped: boolean): MemberOut | null {
  const { rollout } = one
  if (one.verifying) return 'late'
  if (rollout === null || rollout.end === null || rollout.end === 'cancelled') return stopped ? 'censored' : 'cancelled'
  if (rollout.end === 'infra') return 'infra'
  if (isPending(one)) return 'late'
  if (rollout.taints.length > 0) return 'tainted'
  return (verdictInForce(rollout.verdicts)?.reward ?? null) === null ? 'no_number' : null
}

/** What the policy said in a rollout. */
export type Sampled = Required<Pick<SettledMember, 'sampledTokens' | 'turns' | 'weights'>>

/** A member as the settled list names it; null for a slot in which nothing began. */
export function memberOf(
  one: SlotState,
  o: { readonly spec: GroupSpec; readonly stopped: boolean; readonly sampled: Sampled },
): SettledMember | null {
  const { rollout } = one
  if (rollout === null) return null
  const verdict = verdictInForce(rollout.verdicts)
  return {
    rolloutId: rollout.id,
    slot: rollout.slot,
    attempt: rollout.attempt,
    end: rollout.end,
    out: outOf(one, o.stopped),
    verdict:
      verdict === null
        ? null
        : {
            id: verdict.id,
            status: verdict.status,
            reward: verdict.reward,
            ...(verdict.reward === null ? {} : present({ byPolicy: verdict.byPolicy })),
          },
    cut: cutOf(o.spec, rollout.end),
    ...o.sampled,
  }
}
