import { isPaddockError, type RolloutEnd } from '../core/index.ts'
import type { SessionStats } from '../proxy/index.ts'
import type { AgentLimit } from './agent-clock.ts'
import type { HarnessReport } from './harnesses/contract.ts'

/** What is known when the agent stage is over. */
export interface EndFacts {
  readonly cancelled: boolean
  /** What the stage threw, other than expiry and cancellation; null for nothing. */
  readonly fault: unknown
  readonly expired: AgentLimit | null
  /** Null where the harness was stopped before it could say anything. */
  readonly report: HarnessReport | null
  /** As they stood when the agent stage was over; the taints with those of calls that were cut off by the end of the session. */
  readonly stats: Pick<SessionStats, 'exhausted' | 'lastError' | 'taints' | 'replaying'>
}

/**
 * How the rollout ended. A fault of engine, proxy or box is `infra`, whatever the harness made of it: what such an
 * attempt achieved says nothing of the policy (invariant I7). Files of the agent that cannot be handled are the agent's.
 */
export function judgeEnd(facts: EndFacts): { readonly end: RolloutEnd; readonly detail: string } {
  const { report, stats } = facts
  if (facts.cancelled) return { end: 'cancelled', detail: 'the run was cancelled' }
  if (isPaddockError(facts.fault) && facts.fault.code === 'BOX_FILES_UNFIT') {
    return { end: 'harness_crash', detail: faultLine(facts.fault) }
  }
  if (facts.fault !== null) return { end: 'infra', detail: faultLine(facts.fault) }
  if (stats.replaying) {
    const diverged = stats.lastError === 'REPLAY_DIVERGED'
    return { end: 'infra', detail: diverged ? 'it asked something else than its parent: REPLAY_DIVERGED' : tooShort }
  }
  // A session whose last allowed call was also the last one needed has ended in its own way.
  if (stats.lastError === 'BUDGET_EXHAUSTED') {
    return { end: 'budget', detail: `the session's ${stats.exhausted ?? 'budget'} is used up` }
  }
  if (stats.lastError === 'CONTEXT_OVERFLOW') return { end: 'context_overflow', detail: 'the model refused the prompt' }
  if (stats.lastError !== null && stats.taints.includes(stats.lastError)) {
    return { end: 'infra', detail: `the last call failed: ${stats.lastError}` }
  }
  if (facts.expired !== null && stats.taints.length > 0) {
    return { end: 'infra', detail: `the agent's time was up, after ${stats.taints.join(', ')}` }
  }
  if (facts.expired === 'budget') return { end: 'agent_timeout', detail: "the agent's time was up" }
  if (facts.expired === 'wall') return { end: 'agent_timeout', detail: 'the agent stage reached its wall limit' }
  if (report === null) return { end: 'infra', detail: 'the harness ended without a report' }
  if (report.end === 'harness_crash' && stats.taints.length > 0) {
    return { end: 'infra', detail: `${report.detail}, after ${stats.taints.join(', ')}` }
  }
  return { end: report.end, detail: report.detail }
}

const tooShort = 'it ended before the call that it was to be forked at'

/** One line for a fault of any kind. */
export function faultLine(fault: unknown): string {
  if (isPaddockError(fault)) return fault.line()
  return fault instanceof Error ? `${fault.name}: ${fault.message}` : String(fault)
}
