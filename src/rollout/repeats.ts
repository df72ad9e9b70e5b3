import type { RepeatSummary, RolloutSummary } from './contract.ts'

/**
 * How much the repeats of a run differ: repeat s is the rollout of slot s of every task. Only tasks whose every repeat has a
 * reward count, so that the repeats are means over the same tasks. Null without two repeats of one such task.
 */
export function repeatsOf(rollouts: readonly RolloutSummary[]): RepeatSummary | null {
  const last = rollouts.filter(({ retried }) => !retried)
  const tasks = [...Map.groupBy(last, ({ groupId }) => groupId).values()].flatMap((of) => {
    const rewards = of.toSorted((a, b) => a.slot - b.slot).map(rewardOf)
    return rewards.every((reward) => reward !== null) ? [rewards] : []
  })
  const repeats = Math.min(...tasks.map((rewards) => rewards.length))
  if (tasks.length === 0 || repeats < 2) return null
  const means = Array.from({ length: repeats }, (_, at) => meanOf(tasks.map((rewards) => rewards[at] ?? 0)))
  const mean = meanOf(means)
  return {
    repeats,
    tasks: tasks.length,
    mean,
    deviation: Math.sqrt(meanOf(means.map((one) => (one - mean) ** 2))),
    lowest: Math.min(...means),
    highest: Math.max(...means),
    flips: tasks.filter((rewards) => new Set(rewards.slice(0, repeats)).size > 1).length,
  }
}

function rewardOf({ verdict, taints }: RolloutSummary): number | null {
  return verdict === null || taints.length > 0 ? null : verdict.reward
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
