import type { Digest, Id, Verdict } from '../../core/index.ts'
import {
  type CountedAttempt,
  countedAttempt,
  type RolloutTraining,
  type RolloutView,
  verdictInForce,
} from '../../trajectory/index.ts'
import type { FailureLine, RolloutLine, Tally } from './contract.ts'

/** A rollout with what its tables, filters and failures need. */
export interface ReadRollout {
  readonly runId: Id
  readonly taskDigest: Digest
  /** Null until the agent is done. */
  readonly sampledTokens: number | null
  readonly line: RolloutLine
  /** Null where it did not fail. */
  readonly failure: Failure | null
  /** Null where no trainer was handed a row of it. */
  readonly handed: RolloutTraining | null
  /** Without its weights, which its round tells when it settles. */
  readonly counted: CountedAttempt
}

/** Why a rollout failed. */
export type Failure = Pick<FailureLine, 'cause' | 'kind' | 'detail'>

/** A rollout as its tables show it. */
export function readRollout(view: RolloutView, task: string, handed: RolloutTraining | null = null): ReadRollout {
  const verdict = verdictInForce(view.verdicts)
  const failure = failureOf(view, verdict)
  return {
    runId: view.runId,
    taskDigest: view.taskDigest,
    sampledTokens: view.work?.sampledTokens ?? null,
    failure,
    handed,
    counted: countedAttempt(view, task),
    line: {
      id: view.id,
      groupId: view.groupId,
      task,
      slot: view.slot,
      attempt: view.attempt,
      harness: view.harness,
      startedAt: view.startedAt,
      endedAt: view.endedAt,
      end: view.end,
      status: verdict?.status ?? null,
      reward: verdict?.reward ?? null,
      tainted: view.taints.length > 0,
      cause: failure?.cause ?? null,
    },
  }
}

/** Ended, has a number, and nothing of ours stood in its way: what a trainer may use. */
export function isEffective({ line }: ReadRollout): boolean {
  return line.reward !== null && !line.tainted && line.end !== 'infra' && line.end !== 'cancelled'
}

/** Counts over rollouts. */
export function tallyOf(rollouts: readonly ReadRollout[]): Tally {
  const effective = rollouts.filter(isEffective)
  return {
    rollouts: rollouts.length,
    running: rollouts.filter(({ line }) => line.end === null).length,
    effective: effective.length,
    meanReward: mean(rewardsOf(effective)),
    meanOfAll: mean(rewardsOf(rollouts)),
  }
}

/** The numbers among the rewards. */
export function rewardsOf(rollouts: readonly ReadRollout[]): readonly number[] {
  return rollouts.flatMap(({ line }) => line.reward ?? [])
}

/** Population standard deviation; null below two values. */
export function spreadOf(values: readonly number[]): number | null {
  const middle = mean(values)
  if (middle === null || values.length < 2) return null
  return Math.sqrt(values.reduce((total, value) => total + (value - middle) ** 2, 0) / values.length)
}

/** Failures by cause, the most frequent first. */
export function failuresOf(rollouts: readonly ReadRollout[]): readonly FailureLine[] {
  const found = new Map<string, { line: FailureLine; count: number }>()
  for (const { line, failure } of rollouts) {
    if (failure === null) continue
    const before = found.get(failure.cause)
    if (before !== undefined) before.count += 1
    else found.set(failure.cause, { line: { ...failure, count: 1, example: line.id }, count: 1 })
  }
  return [...found.values()]
    .map(({ line, count }) => ({ ...line, count }))
    .toSorted((a, b) => b.count - a.count || (a.cause < b.cause ? -1 : 1))
}

/** Why a rollout failed: what ended it first, then what tainted it, then what its verdict says. Null: it did not. */
function failureOf(view: RolloutView, verdict: Verdict | null): Failure | null {
  const detail = firstLine(view.endDetail)
  if (view.end === null) return null
  if (view.end === 'infra') return { cause: 'infra', kind: 'infrastructure', detail }
  if (view.end === 'cancelled') return { cause: 'cancelled', kind: 'infrastructure', detail }
  const [taint] = view.taints
  if (taint !== undefined) return { cause: 'tainted', kind: 'infrastructure', detail: firstLine(taint) }
  if (view.end !== 'completed') return { cause: view.end, kind: 'agent', detail }
  if (verdict === null) return { cause: 'no verdict', kind: 'verdict', detail: '' }
  if (verdict.reward === null) return { cause: verdict.status, kind: 'verdict', detail: firstLine(verdict.reason) }
  if (verdict.status === 'hacked') return { cause: 'hacked', kind: 'verdict', detail: firstLine(verdict.evidence) }
  if (verdict.reward <= 0) return { cause: 'scored 0', kind: 'verdict', detail: firstLine(verdict.evidence) }
  return null
}

/** Null of none. */
export function mean(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((total, value) => total + value, 0) / values.length
}

function firstLine(text: string): string {
  return (text.trim().split('\n')[0] ?? '').slice(0, 200)
}
