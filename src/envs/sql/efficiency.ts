import type { RVes } from '../../reward/index.ts'
import type { SqlData } from './data.ts'
import { engineOf } from './engines/index.ts'
import type { Outcome } from './executions.ts'

/** R-VES itself goes beyond 1; a share of a reward does not. */
export function byTime({ timeRatio, score }: RVes): Readonly<Record<string, number>> {
  return { efficiency: Math.min(1, score), r_ves: score, time_ratio: Math.round(timeRatio * 100) / 100 }
}

/**
 * min(1, instructions of the fastest gold / instructions of the submission) over all databases. Instructions of SQLite's
 * machine in place of R-VES's seconds: the same on every machine, every time. Other engines count none.
 */
export function bySteps(
  { database }: SqlData,
  golds: readonly (readonly Outcome[])[],
  answers: readonly Outcome[],
): Readonly<Record<string, number>> {
  if (!engineOf(database).countsSteps) return {}
  const cost = (outcomes: readonly Outcome[]) =>
    outcomes.reduce((sum, outcome) => sum + (outcome.status === 'ok' ? outcome.steps + 1 : 0), 0)
  return { efficiency: Math.min(1, Math.min(...golds.map(cost)) / cost(answers)) }
}
