import { isDeepStrictEqual } from 'node:util'
import { compareDatabases, compareTables, type Comparison } from '../../reward/index.ts'
import type { SqlData } from './data.ts'
import type { GoldRuns, Outcome } from './executions.ts'
import { verifierLimits } from './runner.ts'
import { tableOf } from './wire.ts'

/** A submission against one gold. */
interface Agreement {
  readonly gold: string
  /** Databases on which they agree. */
  readonly agreeing: number
  readonly onFirst: boolean
  readonly lines: readonly string[]
}

/** How far answers agree with one gold, database by database. */
export async function compareWith(
  data: SqlData,
  goldSql: string,
  gold: readonly Outcome[],
  answers: readonly Outcome[],
): Promise<Agreement> {
  const results = await Promise.all(answers.map((answer, i) => compareOutcomes(data, goldSql, gold[i], answer, i > 0)))
  return {
    gold: goldSql,
    agreeing: results.filter((result) => result.equal).length,
    onFirst: results[0]?.equal ?? false,
    lines: results.map((result, i) => `${i === 0 ? 'database' : `neighbour ${i}`}: ${result.why}`),
  }
}

async function compareOutcomes(
  data: SqlData,
  goldSql: string,
  gold: Outcome | undefined,
  answer: Outcome,
  isNeighbour: boolean,
): Promise<Comparison> {
  if (gold?.status !== 'ok' || answer.status !== 'ok') return { equal: false, why: 'nothing to compare' }
  const { semantics, conditionColumns } = data
  if (data.mode === 'query') {
    if (isNeighbour && saysNothing(gold)) return { equal: true, why: 'gold finds nothing here' }
    if (answer.more) return { equal: false, why: `more than ${verifierLimits.maxRows} rows` }
    return compareTables(tableOf(gold), tableOf(answer), { semantics, goldSql, conditionColumns })
  }
  return compareStates(data, gold, answer)
}

async function compareStates(
  { semantics, ignoreColumns, probes }: SqlData,
  gold: Outcome,
  answer: Outcome,
): Promise<Comparison> {
  if (!('state' in gold) || !('state' in answer)) return { equal: false, why: 'no state' }
  if (gold.state === undefined || answer.state === undefined) return { equal: false, why: 'no state' }
  const o = { semantics, ignoreColumns, probes }
  const [wanted, given] = [
    { state: gold.state, probes: gold.probes },
    { state: answer.state, probes: answer.probes },
  ]
  return compareDatabases(wanted, given, o)
}

/** One row of NULL and 0: where a neighbour lost all that a question is about, right queries differ in NULL and 0. */
function saysNothing(gold: Extract<Outcome, { status: 'ok' }>): boolean {
  const [row, ...others] = gold.rows
  return row !== undefined && others.length === 0 && row.every((value) => value === null || Number(value) === 0)
}

/** Why no submission can be judged by the golds; null: all is well. */
export async function goldProblem({ golds, again, untouched }: GoldRuns, data: SqlData): Promise<string | null> {
  for (const [i, outcomes] of golds.entries()) {
    const failed = outcomes.find((outcome) => outcome.status === 'error')
    if (failed?.status === 'error') return `Gold ${i + 1} does not run: ${failed.kind}: ${failed.message}`
    const [first] = outcomes
    if (first?.status !== 'ok') return `Gold ${i + 1} was not run.`
    if (!isDeepStrictEqual(first, again[i])) return `Gold ${i + 1} gives another result each time.`
    if (outcomes.some((outcome) => outcome.status === 'ok' && outcome.more)) return `Gold ${i + 1} gives too many rows.`
    if (data.mode === 'query' && first.rows.length === 0) return `Gold ${i + 1} finds nothing, as any wrong query does.`
    if (untouched !== null && (await compareStates(data, untouched, first)).equal)
      return `Gold ${i + 1} changes nothing.`
  }
  return null
}
