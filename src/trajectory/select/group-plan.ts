import type { Id } from '../../core/index.ts'
import type { RolloutView } from '../contract/index.ts'
import type { DropReason, SelectionQuery, SelectionSummary } from '../rows-contract.ts'
import { groupAdvantages } from './advantage.ts'
import { verdictFor } from './matches.ts'

/** Why a rollout is left out. */
export interface Drop {
  readonly reason: DropReason
  readonly detail: string
}

/** A rollout of a group, and why it is left out, null while it is not. */
export interface Member {
  readonly rollout: RolloutView
  readonly drop: Drop | null
  /** It was cut, and its group masks such rollouts: its reward counts, and nothing of it trains. */
  readonly isMasked: boolean
  /** Its rows that are left out, by id. */
  readonly leave: ReadonlyMap<string, DropReason>
}

/** What becomes of a group. */
export interface GroupPlan {
  readonly members: readonly Member[]
  /** Why the whole group is left out, null when it is not. */
  readonly dropped: SelectionSummary['groups']['dropped'][number]['reason'] | null
  /** Of the members that are exported. */
  readonly advantages: ReadonlyMap<Id, number | null>
}

/** Decides over a group as a whole. `room` is how many rollouts the query's limit still allows. */
export function planGroup(given: readonly Member[], query: SelectionQuery, room: number): GroupPlan {
  const exact = query.exactGroupSize
  const sized = exact === undefined ? given : trimmed(given, exact)
  const dropped = groupDrop(sized.filter(isUsable), query)
  const cut: Drop = { reason: 'filtered', detail: `limit ${query.limit ?? ''}` }
  let left = exact === undefined || exact <= room ? room : 0
  const members = sized.map((member): Member => {
    if (member.drop !== null) return member
    if (dropped !== null) return { ...member, drop: { reason: 'group_dropped', detail: dropped } }
    left -= 1
    return left < 0 ? { ...member, drop: cut } : member
  })
  // What is masked has no row to train in some formats, and is in the mean of its group all the same.
  const counted = members.filter(
    (member) => isUsable(member) || (member.isMasked && member.drop?.reason === 'nothing_to_train'),
  )
  const advantages = groupAdvantages(counted.map(({ rollout }) => rewardOf(rollout, query)))
  const byId = new Map(counted.map(({ rollout }, index) => [rollout.id, advantages[index] ?? null]))
  return { members, dropped, advantages: byId }
}

/** The first usable members by slot stay: an order that knows nothing of how they ended. */
function trimmed(members: readonly Member[], size: number): readonly Member[] {
  const bySlot = members.filter(isUsable).toSorted((a, b) => a.rollout.slot - b.rollout.slot)
  const surplus = new Set(bySlot.slice(size))
  const drop: Drop = { reason: 'group_surplus', detail: `the group has ${bySlot.length} usable members for ${size}` }
  return members.map((member) => (surplus.has(member) ? { ...member, drop } : member))
}

function groupDrop(usable: readonly Member[], query: SelectionQuery): GroupPlan['dropped'] {
  if (usable.length === 0) return 'empty'
  if (usable.length < Math.max(query.minGroupSize ?? 1, query.exactGroupSize ?? 1)) return 'too_small'
  if (query.dropZeroVariance !== true) return null
  return new Set(usable.map(({ rollout }) => rewardOf(rollout, query))).size === 1 ? 'zero_variance' : null
}

function isUsable({ drop }: Member): boolean {
  return drop === null
}

function rewardOf(rollout: RolloutView, query: SelectionQuery): number | null {
  return verdictFor(rollout, query)?.reward ?? null
}
