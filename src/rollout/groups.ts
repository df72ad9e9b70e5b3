import type { GroupRecord } from '../trajectory/index.ts'
import type { Task } from '../core/index.ts'
import type { GroupSummary, RolloutSummary } from './contract.ts'

/** Statistics over the last attempt of each slot; a rollout without a number, or a tainted one, has no reward here. */
export function summariseGroup(
  group: GroupRecord,
  task: Task,
  attempts: readonly RolloutSummary[],
): Omit<GroupSummary, 'settled'> {
  const last = attempts.filter((rollout) => rollout.groupId === group.id && !rollout.retried)
  const rewards = last.flatMap(({ verdict, taints }) =>
    verdict === null || verdict.reward === null || taints.length > 0 ? [] : [verdict.reward],
  )
  const ends: Partial<Record<RolloutSummary['end'], number>> = {}
  for (const { end } of last) ends[end] = (ends[end] ?? 0) + 1
  const mean = rewards.length === 0 ? null : rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length
  const variance =
    mean === null ? null : rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0) / rewards.length
  return {
    groupId: group.id,
    task: { name: task.name, digest: task.digest },
    promptVariant: group.promptVariant,
    size: last.length,
    rewards,
    mean,
    deviation: variance === null ? null : Math.sqrt(variance),
    ends,
  }
}
