import type { RolloutEnd } from '../../core/index.ts'
import type { GroupSpec, OnCut, RoundRecord, RoundView, SettledRound, SlotRecord } from '../contract/index.ts'

/** A round as it was asked for; stores from before `carry` and `fork` do not say them. */
export function parseRound(record: string): RoundRecord {
  // Only openRound writes these.
  const round = JSON.parse(record) as RoundRecord
  const { carry = false, fork = null } = round.spec as Partial<RoundRecord['spec']>
  return { ...round, spec: { ...round.spec, carry, fork } }
}

/** What a round came to; stores from before `carry` carried nobody. */
export function parseSettled(record: string): SettledRound {
  // Only settleRound writes these.
  return { carried: { members: 0, sampledTokens: 0 }, ...(JSON.parse(record) as Omit<SettledRound, 'carried'>) }
}

/** Whether a round was stopped on rewards, which selects what it holds: means over it are biased. */
export function isOutcomeStopped({ stoppedBy }: Pick<SettledRound, 'stoppedBy'>): boolean {
  return stoppedBy === 'any_pass' || stoppedBy === 'variance'
}

/** What its group makes of a rollout that was cut; null where it was not cut. */
export function cutOf({ onCut }: Pick<GroupSpec, 'onCut'>, end: RolloutEnd | null): OnCut | null {
  switch (end) {
    case 'horizon':
    case 'budget':
    case 'context_overflow':
    case 'agent_timeout':
      return onCut[end]
    default:
      return null
  }
}

/** Slots whose members go on after their round has settled; none while it has not. */
export function carriedSlots({
  spec,
  slots,
  settled,
}: Pick<RoundView, 'spec' | 'slots' | 'settled'>): readonly SlotRecord[] {
  if (!spec.carry || settled === null || settled.stoppedBy === 'cancelled') return []
  const listed = new Set(settled.members.map(({ slot }) => slot))
  return slots.filter(({ slot }) => !listed.has(slot))
}
