import type { Verdict } from '../../core/index.ts'

/** The last verdict that no other supersedes, null without any. */
export function verdictInForce(verdicts: readonly Verdict[]): Verdict | null {
  const superseded = new Set(verdicts.map((verdict) => verdict.supersedes))
  return verdicts.findLast((verdict) => !superseded.has(verdict.id)) ?? null
}
