import { sha256 } from '../../core/index.ts'
import {
  compose,
  type DraftFacts,
  hacked,
  scored,
  stepsByStatus,
  unscored,
  type VerdictDraft,
} from '../../reward/index.ts'
import { packArtifact } from '../artifacts.ts'
import type { Artifacts, VerifyContext } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import { compareWith, goldProblem } from './agreement.ts'
import { sqlNeeds, submissionPath } from './box.ts'
import type { SqlData } from './data.ts'
import { bySteps, byTime } from './efficiency.ts'
import { engineOf } from './engines/index.ts'
import { type Outcome, runGolds, runSubmission } from './executions.ts'
import { recordAmong } from './record.ts'
import { timeSubmission, type Timing } from './timing.ts'

/** Changes when the same submission could get another verdict. */
export const sqlVerifierVersion = '6'

type Context = Omit<VerifyContext, 'task'> & { readonly task: TaskOf<SqlData> }

/**
 * Runs gold and then the submission in a fresh box, on the task's database and on its neighbours, each in a process of
 * its own, and compares on the host. A gold that does not run, finds nothing, changes nothing or is not stable is a
 * `gold_error`: nobody can be scored by it. A submission that tries to change what it may only read is `hacked`.
 */
export async function verifySubmission(context: Context): Promise<VerdictDraft> {
  const { task, artifacts, signal } = context
  const steps = task.data.stepValues === 'status' ? stepsByStatus(context.toolCalls ?? []) : []
  const facts = { ...(await factsOf(task, artifacts)), steps }
  await using box = await context.openBox(sqlNeeds(task))
  await engineOf(task.data.database).start(box, signal)
  const runs = await runGolds(box, task.data, signal)
  const { databases, golds } = runs
  const wrong = await goldProblem(runs, task.data)
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
  const time = (gold: string) => timeSubmission(box, task.data, { gold, sql: submission, signal })
  return judge(task.data, golds, answers, { facts, conduct: conductOf(artifacts, task.data), time })
}

interface Judging {
  readonly facts: DraftFacts
  readonly conduct: Readonly<Record<string, number>>
  /** Times the submission against this gold. */
  readonly time: (gold: string) => Promise<Timing>
}

async function judge(
  data: SqlData,
  golds: readonly (readonly Outcome[])[],
  answers: readonly Outcome[],
  { facts, conduct, time }: Judging,
): Promise<VerdictDraft> {
  const failed = answers.find((answer) => answer.status === 'error')
  if (failed?.status === 'error') {
    const components = { submitted: 1, executes: 0, result: 0, ...conduct }
    const draft = { ...facts, components, evidence: `${failed.kind}: ${failed.message}` }
    return failed.kind === 'refused' ? hacked(0, draft) : scored(0, draft)
  }
  const tries = await Promise.all(golds.map((gold, i) => compareWith(data, data.golds[i] ?? '', gold, answers)))
  const best = tries.toSorted((a, b) => b.agreeing - a.agreeing)[0]
  const agreeing = best?.agreeing ?? 0
  const right = agreeing === answers.length
  const agreed = {
    submitted: 1,
    executes: 1,
    // On the task's own database; the reward asks for the neighbours too.
    result: Number(tries.some((one) => one.onFirst)),
    agreement: agreeing / answers.length,
    ...conduct,
  }
  const evidence = best?.lines.join('\n') ?? ''
  if (!right) return scored(0, { ...facts, components: agreed, evidence })
  const timing = data.efficiencyBy === 'time' ? await time(best?.gold ?? '') : null
  if (timing?.ok === false) {
    const reason = `The query is right and could not be timed: ${timing.reason}`
    return unscored('unscorable', reason, { ...facts, components: agreed, evidence })
  }
  const components = { ...agreed, ...(timing === null ? bySteps(data, golds, answers) : byTime(timing.rVes)) }
  const weights = weightsOf(data, conduct)
  const composed = compose(components, { kind: 'weighted', weights })
  return composed.ok
    ? scored(composed.reward, { ...facts, components, evidence })
    : unscored('unscorable', composed.reason, facts)
}

/** How it was worked: shares from 0 to 1 of what the task asks for. */
function conductOf(artifacts: Artifacts, { exploration }: SqlData): Readonly<Record<string, number>> {
  const record = recordAmong(artifacts)
  if (record === null) return {}
  const { explored, tags } = record
  return {
    ...(exploration === undefined ? {} : { exploration: Math.min(1, explored.length / exploration.statements) }),
    ...(tags === null ? {} : { format: tags.turns === 0 ? 0 : 1 - tags.malformed / tags.turns }),
  }
}

/** What is not weighed otherwise is agreement. A harness without tags has no format to keep, and loses nothing. */
function weightsOf(data: SqlData, conduct: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  const own = {
    efficiency: data.efficiencyWeight,
    exploration: Object.hasOwn(conduct, 'exploration') ? (data.exploration?.weight ?? 0) : 0,
    format: Object.hasOwn(conduct, 'format') ? (data.formatWeight ?? 0) : 0,
  }
  const used = Object.fromEntries(Object.entries(own).filter(([, weight]) => weight > 0))
  return { agreement: 1 - Object.values(used).reduce((sum, weight) => sum + weight, 0), ...used }
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
  const { database: _database, mode: _mode, limits: _limits, difficulty: _difficulty, ...judged } = task.data
  return {
    verifier: {
      id: `sql/${task.name}`,
      version: sqlVerifierVersion,
      sha256: sha256(JSON.stringify([judged, engineOf(task.data.database).program])),
    },
    trust: 'separate',
    artifacts: packed.map(({ path, sha256: digest, sizeBytes }) => ({ path, sha256: digest, sizeBytes })),
  }
}
