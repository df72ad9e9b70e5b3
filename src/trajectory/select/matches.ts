import type { Task, Verdict } from '../../core/index.ts'
import { importedHarness, rewrittenHarness, type RolloutView } from '../contract/index.ts'
import type { DropReason, SelectionQuery } from '../rows-contract.ts'
import { verdictInForce, verdictOfPolicy } from '../contract/index.ts'

/** Whether a rollout is in the selection at all: by its names. What is not is not counted anywhere. */
export function isSelected(rollout: RolloutView, task: Task, query: SelectionQuery): boolean {
  return (
    among(query.runIds, rollout.runId) &&
    among(query.groupIds, rollout.groupId) &&
    among(query.rolloutIds, rollout.id) &&
    among(query.taskDigests, rollout.taskDigest) &&
    among(query.environments, task.environment) &&
    among(query.harnesses, rollout.harness) &&
    among(query.splits, task.split)
  )
}

/** The verdict that counts for a query. */
export function verdictFor({ verdicts }: RolloutView, { policy }: SelectionQuery): Verdict | null {
  return verdictOfPolicy(verdictInForce(verdicts), policy ?? null)
}

/** Why a selected rollout is not usable for the query; null when it is. The order is that of the rollout's life. */
export function dropOf(
  rollout: RolloutView,
  query: SelectionQuery,
): { readonly reason: DropReason; readonly detail: string } | null {
  if (rollout.harness === importedHarness && query.includeImported !== true) {
    return { reason: 'imported', detail: rollout.labels.place ?? '' }
  }
  if (rollout.harness === rewrittenHarness && query.includeImported !== true) {
    return { reason: 'rewritten', detail: rollout.labels['rewritten.from'] ?? '' }
  }
  const verdict = verdictFor(rollout, query)
  if (isUnfinished(rollout) && query.includeUnfinished !== true) {
    return { reason: 'rollout_unfinished', detail: rollout.end ?? (rollout.work === null ? 'no end' : 'unverified') }
  }
  if (rollout.taints.length > 0 && query.includeTainted !== true) {
    return { reason: 'tainted', detail: rollout.taints.join(', ') }
  }
  if ((verdict === null || verdict.reward === null) && query.includeNullVerdicts !== true) {
    return { reason: 'verdict_null', detail: verdict?.status ?? 'no verdict' }
  }
  if (query.verdictStatuses !== undefined && (verdict === null || !query.verdictStatuses.includes(verdict.status))) {
    return { reason: 'filtered', detail: `verdict ${verdict?.status ?? 'none'}` }
  }
  const reward = verdict?.reward ?? null
  const low = query.minReward !== undefined && (reward === null || reward < query.minReward)
  const high = query.maxReward !== undefined && (reward === null || reward > query.maxReward)
  return low || high ? { reason: 'filtered', detail: `reward ${reward ?? 'none'}` } : null
}

/** It still runs, or ended without an end of its agent. */
export function isUnfinished({ end }: RolloutView): boolean {
  return end === null || end === 'infra' || end === 'cancelled'
}

function among<T>(list: readonly T[] | undefined, value: T): boolean {
  return list === undefined || list.includes(value)
}
