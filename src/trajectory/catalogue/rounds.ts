import type { Id, RolloutEnd } from '../../core/index.ts'
import type { GroupSpec, OnCut, RoundRecord, RoundView, SettledRound, SlotRecord } from '../contract/index.ts'
import { type Sql, wholeRows } from '../sql/index.ts'
import { catalogueTables } from './schema.ts'

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

/** Rounds of a run that settled behind `after`, in the order in which they did. Throws `STORE_CORRUPT`. */
export async function settledAfter(
  sql: Sql,
  run: Id,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<readonly { readonly seq: number; readonly settled: SettledRound }[]> {
  const told = await wholeRows<{ seq: number; data: string }>(
    sql,
    catalogueTables.runEvents,
    `WHERE run = ? AND kind = 'group_settled' AND seq > ? ORDER BY seq LIMIT ?`,
    run,
    after,
    limit,
  )
  const found: { seq: number; settled: SettledRound }[] = []
  for (const { seq, data } of told) {
    // Only `settleRound` writes this kind.
    const { groupId, round } = JSON.parse(data) as Pick<SettledRound, 'groupId' | 'round'>
    const where = 'WHERE "group" = ? AND round = ?'
    const [row] = await wholeRows<{ record: string }>(sql, catalogueTables.settled, where, groupId, round)
    if (row !== undefined) found.push({ seq, settled: parseSettled(row.record) })
  }
  return found
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
