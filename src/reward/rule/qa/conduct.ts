import type { RuleResult } from '../rule.ts'

/** The share of queries that repeat an earlier one. `keys` are the queries as the engine understands them. 0 is best. */
export function duplicateQueries(keys: readonly string[]): RuleResult {
  const repeated = keys.length - new Set(keys).size
  return { value: keys.length === 0 ? 0 : repeated / keys.length, why: `${repeated} of ${keys.length} queries repeat` }
}

/** How far a count is beyond what is allowed, as a share of the allowance, at most 1. 0 is best. */
export function overSearch(count: number, allowed: number): RuleResult {
  const beyond = Math.max(0, count - allowed)
  return { value: Math.min(1, beyond / Math.max(1, allowed)), why: `${count} searches, ${allowed} allowed` }
}

/**
 * Takes penalties off a reward: each takes its weight's share of what was earned. A reward that is 0 stays 0 and none
 * becomes negative, so that no conduct makes a wrong answer better than a right one.
 */
export function penalised(
  reward: number,
  penalties: Readonly<Record<string, number>>,
  weights: Readonly<Record<string, number>>,
): number {
  const taken = Object.entries(weights).reduce((sum, [name, weight]) => sum + weight * (penalties[name] ?? 0), 0)
  return reward * (1 - Math.min(1, Math.max(0, taken)))
}
