import { isDeepStrictEqual } from 'node:util'
import { sha256 } from '../../core/index.ts'
import {
  compareTables,
  compose,
  type DraftFacts,
  hacked,
  probeDifferences,
  scored,
  stateDifferences,
  unscored,
  type VerdictDraft,
} from '../../reward/index.ts'
import { packArtifact } from '../artifacts.ts'
import type { Artifacts, VerifyContext } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import { sqlNeeds, submissionPath } from './box.ts'
import type { SqlData } from './data.ts'
import { type GoldRuns, type Outcome, runGolds, runSubmission } from './executions.ts'
import { runnerSource, verifierLimits } from './runner.ts'
import { tableOf } from './wire.ts'

/** Changes when the same submission could get another verdict. */
export const sqlVerifierVersion = '1'

type Context = Omit<VerifyContext, 'task'> & { readonly task: TaskOf<SqlData> }

/**
 * Runs gold and then the submission in a fresh box, on the task's database and on its neighbours, each in a process of
 * its own, and compares on the host. A gold that does not run, finds nothing, changes nothing or is not stable is a
 * `gold_error`: nobody can be scored by it. A submission that tries to change what it may only read is `hacked`.
 */
export async function verifySubmission(context: Context): Promise<VerdictDraft> {
  const { task, artifacts, signal } = context
  const facts = await factsOf(task, artifacts)
  await using box = await context.openBox(sqlNeeds(task))
  const runs = await runGolds(box, task.data, signal)
  const { databases, golds } = runs
  const wrong = goldProblem(runs, task.data)
  if (wrong !== null) return unscored('gold_error', wrong, facts)
  const submission = submissionOf(artifacts)
  if (submission === null) {
    return scored(0, {
      ...facts,
      components: { submitted: 0, executes: 0, result: 0 },
      evidence: 'Nothing was submitted.',
    })
  }
  const answers = await runSubmission(box, task.data, { databases, sql: submission, signal })
  return judge(task.data, golds, answers, facts)
}

function judge(
  data: SqlData,
  golds: readonly (readonly Outcome[])[],
  answers: readonly Outcome[],
  facts: DraftFacts,
): VerdictDraft {
  const failed = answers.find((answer) => answer.status === 'error')
  if (failed?.status === 'error') {
    const components = { submitted: 1, executes: 0, result: 0 }
    const draft = { ...facts, components, evidence: `${failed.kind}: ${failed.message}` }
    return failed.kind === 'refused' ? hacked(0, draft) : scored(0, draft)
  }
  const tries = golds.map((gold, i) => compareWith(data, data.golds[i] ?? '', gold, answers))
  const best = tries.toSorted((a, b) => b.agreeing - a.agreeing)[0]
  const agreeing = best?.agreeing ?? 0
  const right = agreeing === answers.length
  const components = {
    submitted: 1,
    executes: 1,
    // On the task's own database; the reward asks for the neighbours too.
    result: Number(tries.some((one) => one.onFirst)),
    agreement: agreeing / answers.length,
    ...(right ? { efficiency: efficiencyOf(golds, answers) } : {}),
  }
  const evidence = best?.lines.join('\n') ?? ''
  if (!right) return scored(0, { ...facts, components, evidence })
  const weights = { agreement: 1 - data.efficiencyWeight, efficiency: data.efficiencyWeight }
  const composed = compose(components, { kind: 'weighted', weights })
  return composed.ok
    ? scored(composed.reward, { ...facts, components, evidence })
    : unscored('unscorable', composed.reason, facts)
}

interface Try {
  readonly agreeing: number
  readonly onFirst: boolean
  readonly lines: readonly string[]
}

/** How far answers agree with one gold, database by database. */
function compareWith(data: SqlData, goldSql: string, gold: readonly Outcome[], answers: readonly Outcome[]): Try {
  const results = answers.map((answer, i) => compareOutcomes(data, goldSql, gold[i], answer, i > 0))
  return {
    agreeing: results.filter((result) => result.equal).length,
    onFirst: results[0]?.equal ?? false,
    lines: results.map((result, i) => `${i === 0 ? 'database' : `neighbour ${i}`}: ${result.why}`),
  }
}

function compareOutcomes(
  data: SqlData,
  goldSql: string,
  gold: Outcome | undefined,
  answer: Outcome,
  isNeighbour: boolean,
) {
  if (gold?.status !== 'ok' || answer.status !== 'ok') return { equal: false, why: 'nothing to compare' }
  const { semantics, conditionColumns } = data
  if (data.mode === 'query') {
    if (isNeighbour && saysNothing(gold)) return { equal: true, why: 'gold finds nothing here' }
    if (answer.more) return { equal: false, why: `more than ${verifierLimits.maxRows} rows` }
    return compareTables(tableOf(gold), tableOf(answer), { semantics, goldSql, conditionColumns })
  }
  return compareStates(data, gold, answer)
}

function compareStates({ semantics, ignoreColumns }: SqlData, gold: Outcome, answer: Outcome) {
  if (!('state' in gold) || !('state' in answer)) return { equal: false, why: 'no state' }
  if (gold.state === undefined || answer.state === undefined) return { equal: false, why: 'no state' }
  const o = { semantics, ignoreColumns }
  const lines = [...stateDifferences(gold.state, answer.state, o), ...probeDifferences(gold.probes, answer.probes, o)]
  return { equal: lines.length === 0, why: lines.length === 0 ? 'equal state' : lines.join('; ') }
}

/** One row of NULL and 0: where a neighbour lost all that a question is about, right queries differ in NULL and 0. */
function saysNothing(gold: Extract<Outcome, { status: 'ok' }>): boolean {
  const [row, ...others] = gold.rows
  return row !== undefined && others.length === 0 && row.every((value) => value === null || Number(value) === 0)
}

/** Why no submission can be judged by the golds; null: all is well. */
function goldProblem({ golds, again, untouched }: GoldRuns, data: SqlData): string | null {
  for (const [i, outcomes] of golds.entries()) {
    const failed = outcomes.find((outcome) => outcome.status === 'error')
    if (failed?.status === 'error') return `Gold ${i + 1} does not run: ${failed.kind}: ${failed.message}`
    const [first] = outcomes
    if (first?.status !== 'ok') return `Gold ${i + 1} was not run.`
    if (!isDeepStrictEqual(first, again[i])) return `Gold ${i + 1} gives another result each time.`
    if (outcomes.some((outcome) => outcome.status === 'ok' && outcome.more)) return `Gold ${i + 1} gives too many rows.`
    if (data.mode === 'query' && first.rows.length === 0) return `Gold ${i + 1} finds nothing, as any wrong query does.`
    if (untouched !== null && compareStates(data, untouched, first).equal) return `Gold ${i + 1} changes nothing.`
  }
  return null
}

/**
 * min(1, instructions of the fastest gold / instructions of the submission) over all databases. Instructions of SQLite's
 * machine in place of R-VES's seconds: the same on every machine, every time.
 */
function efficiencyOf(golds: readonly (readonly Outcome[])[], answers: readonly Outcome[]): number {
  const cost = (outcomes: readonly Outcome[]) =>
    outcomes.reduce((sum, outcome) => sum + (outcome.status === 'ok' ? outcome.steps + 1 : 0), 0)
  return Math.min(1, Math.min(...golds.map(cost)) / cost(answers))
}

function submissionOf(artifacts: Artifacts): string | null {
  const item = artifacts.items.find(({ path }) => path === submissionPath)
  const file = item?.content.entries.find((entry) => entry.type === 'file')
  if (file?.type !== 'file') return null
  const sql = new TextDecoder().decode(file.data)
  return sql.trim() === '' ? null : sql
}

async function factsOf(task: TaskOf<SqlData>, artifacts: Artifacts): Promise<DraftFacts> {
  const packed = await Promise.all(artifacts.items.filter((item) => item.content.found).map(packArtifact))
  const { golds, semantics, conditionColumns, probes, ignoreColumns, neighbours, efficiencyWeight } = task.data
  const judged = { golds, semantics, conditionColumns, probes, ignoreColumns, neighbours, efficiencyWeight }
  return {
    verifier: {
      id: `sql/${task.name}`,
      version: sqlVerifierVersion,
      sha256: sha256(JSON.stringify([judged, runnerSource])),
    },
    trust: 'separate',
    artifacts: packed.map(({ path, sha256: digest, sizeBytes }) => ({ path, sha256: digest, sizeBytes })),
  }
}
