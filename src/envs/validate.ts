import { isDeepStrictEqual } from 'node:util'
import { type Digest, isPaddockError, PaddockError, systemClock, type Task } from '../core/index.ts'
import type { VerdictDraft } from '../reward/index.ts'
import type { SandboxProvider } from '../sandbox/index.ts'
import { attempt, type AttemptOptions } from './attempt.ts'
import type { Environment, NamedScript, TaskProof } from './contract.ts'
import { limiter, type Slot } from './limiter.ts'
import type { RefusedTask } from './load-each.ts'
import { taskImage } from './open-box.ts'
import { lastWords, shortOf, wordsOf } from './verdict-words.ts'

/** What one run of a script proved of its task. */
export interface ScriptProof {
  readonly name: string
  readonly role: 'oracle' | 'solution' | 'null_agent' | 'cheat' | 'distractor'
  /** From 1: which of the runs of this script. */
  readonly round: number
  readonly verdict: VerdictDraft
  /** True when the verdict is what the role demands. */
  readonly holds: boolean
  /** One line: what was demanded, what came and what speaks for it. */
  readonly why: string
  readonly durationMs: number
}

/**
 * What is known of a task after all its scripts.
 * - `proven`: gold passes, nothing fails, known hacks fail, each time the same.
 * - `refuted`: at least one script says otherwise, or one that has to be there is missing: the task is wrong.
 * - `flaky`: a script did not get the same verdict each time.
 * - `infra`: our own machinery failed, nothing can be said of the task.
 * - `unproven`: a published task without a solution; only the agent that does nothing was tried, and it scores less than 1.
 * - `unbuilt`: its image cannot be had here.
 * - `refused`: it cannot be used here, or is no task.
 */
export type ValidationStatus = 'proven' | 'refuted' | 'flaky' | 'infra' | 'unproven' | 'unbuilt' | 'refused'

export interface ValidationRow {
  readonly name: string
  /** Null: it does not load. */
  readonly task: Task | null
  readonly status: ValidationStatus
  readonly proofs: readonly ScriptProof[]
  /** One line each, empty when proven. */
  readonly problems: readonly string[]
  /** What its author may want to change though it is proven. Left out: nothing. */
  readonly notes?: readonly string[]
  readonly durationMs: number
}

export interface ValidateOptions {
  readonly environment: Environment
  readonly tasks: readonly Task[]
  /** Tasks that did not load and have a row all the same. Default none. */
  readonly refused?: readonly RefusedTask[]
  readonly sandbox: SandboxProvider
  readonly signal: AbortSignal
  /**
   * Asks of a task what published ones come with: its solution scores 1, an agent that does nothing less. Default false:
   * cheats are asked for too, and the agent that does nothing scores 0.
   */
  readonly published?: boolean
  /** How often each script is run. Default: the oracle twice (once with `published`), everything else once. */
  readonly repeat?: number
  /** Scripts at once, over all tasks. Default 2. */
  readonly parallel?: number
  /** How a script becomes a verdict. Default: {@link attempt}, with a box for each. */
  readonly attempt?: typeof attempt
  /** Told of each task as soon as its last script is through. */
  readonly onResult?: (row: ValidationRow) => void
  /** One line at a time while images are built. */
  readonly onProgress?: (line: string) => void
}

/**
 * Proves tasks with their scripts, directly in boxes and without any model; none stands in the way of another. Rows come in
 * the order of `tasks`, those that were refused in between by name. Rejects with the signal's reason on abort; every
 * fault of a task or of the sandbox is in its row.
 */
export async function validateTasks(o: ValidateOptions): Promise<readonly ValidationRow[]> {
  const slot = limiter(o.parallel ?? 2)
  const refused = (o.refused ?? []).map(({ name, error }): ValidationRow => {
    const problems = [firstLine(error)]
    return { name, task: null, status: 'refused', proofs: [], problems, durationMs: 0 }
  })
  for (const row of refused) o.onResult?.(row)
  const rows = o.tasks.map(async (task) => {
    const started = systemClock.monotonic()
    const found = await validateTask(task, o, slot)
    const row = { name: task.name, task, ...found, durationMs: systemClock.monotonic() - started }
    o.onResult?.(row)
    return row
  })
  const all = await Promise.all(rows)
  if (refused.length === 0) return all
  return [...all, ...refused].toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
}

/** The parts that all runs of a solution agree on. */
class Prover {
  readonly proofs = new Map<Digest, TaskProof>()

  readonly told = (digest: Digest, { transplant, tests }: TaskProof): void => {
    const before = this.proofs.get(digest) ?? { transplant: true, tests }
    const both = before.tests.filter((id) => tests.includes(id))
    this.proofs.set(digest, { transplant: before.transplant && transplant, tests: both })
  }
}

/** A folder that cannot be written to keeps nothing, and is validated all the same. */
async function keep(task: Task, { environment, onProgress }: ValidateOptions, { proofs }: Prover): Promise<void> {
  if (proofs.size === 0) return
  await environment.keepProof?.(task, proofs).catch((error: unknown) => {
    onProgress?.(`${task.name}: what was proven of it could not be kept: ${firstLine(error)}`)
  })
}

/** A solution that needs more than the work of its task says which files it changed elsewhere. */
function notesOf(oracles: readonly ScriptProof[], { proofs }: Prover): readonly string[] {
  if ([...proofs.values()].every(({ transplant }) => transplant)) return []
  const lines = oracles.flatMap(({ verdict }) => verdict.evidence.split('\n'))
  const paths = new Set(lines.flatMap((line) => /^changed outside the work: (.+)$/.exec(line)?.[1] ?? []))
  const where = paths.size === 0 ? '' : `; its solution changes ${[...paths].slice(0, 20).join(', ')}`
  return [
    `trust: shared, because its solution does not pass where only its work is: declare what it makes under artifacts${where}`,
  ]
}

type Found = Pick<ValidationRow, 'status' | 'proofs' | 'problems' | 'notes'>
type Job = { readonly role: ScriptProof['role']; readonly script: NamedScript; readonly rounds: number }

async function validateTask(task: Task, o: ValidateOptions, slot: Slot): Promise<Found> {
  try {
    await slot(() => imagesOf(task, o))
    const { jobs, missing } = await jobsOf(task, o)
    const prover = new Prover()
    const rounds = jobs.flatMap((job) => Array.from({ length: job.rounds }, (_, i) => ({ job, round: i + 1 })))
    const isOracle = ({ job }: { readonly job: Job }): boolean => job.role === 'oracle'
    const run = (list: typeof rounds, how: Pick<AttemptOptions, 'proofs' | 'onProof'>): Promise<ScriptProof[]> =>
      Promise.all(list.map(({ job, round }) => slot(() => prove(task, job, round, { ...o, ...how }))))
    // Each other script is verified as a rollout will be.
    const first = await run(rounds.filter(isOracle), { onProof: prover.told })
    const others = await run(
      rounds.filter((one) => !isOracle(one)),
      { proofs: prover.proofs },
    )
    const proofs = [...first, ...others]
    const failed = proofs.filter((proof) => !proof.holds).map((proof) => `${proof.name}: ${proof.why}`)
    const differences = jobs.flatMap((job) => differenceOf(job, proofs, o.published ?? false))
    const problems = [...missing, ...differences, ...new Set(failed)]
    if (proofs.some(({ verdict }) => verdict.status === 'infra_error')) return { status: 'infra', proofs, problems }
    if (differences.length > 0) return { status: 'flaky', proofs, problems }
    if (failed.length > 0 || (missing.length > 0 && o.published !== true)) {
      return { status: 'refuted', proofs, problems }
    }
    await keep(task, o, prover)
    const notes = notesOf(first, prover)
    return { status: missing.length > 0 ? 'unproven' : 'proven', proofs, problems, notes }
  } catch (error) {
    if (o.signal.aborted) throw o.signal.reason
    return { status: statusOfFault(error), proofs: [], problems: [firstLine(error)] }
  }
}

function statusOfFault(error: unknown): ValidationStatus {
  if (!isPaddockError(error)) return 'refuted'
  if (error.code.startsWith('IMAGE_')) return 'unbuilt'
  if (error.code === 'TASK_UNSUPPORTED') return 'refused'
  return error.family === 'infra' ? 'infra' : 'refuted'
}

function firstLine(error: unknown): string {
  const [line = ''] = (isPaddockError(error) ? error.line() : String(error)).split('\n')
  return line
}

/** Once, before many boxes ask for them. */
async function imagesOf(task: Task, { environment, sandbox, signal, onProgress }: ValidateOptions): Promise<void> {
  signal.throwIfAborted()
  for (const needs of [environment.box(task), environment.verifierBox(task)]) {
    if (needs !== null) await taskImage(sandbox, needs, { signal, ...(onProgress && { onProgress }) })
  }
}

/** The scripts to run, and what should be there and is not. */
async function jobsOf(
  task: Task,
  { environment: { scripts }, published = false, repeat }: ValidateOptions,
): Promise<{ readonly jobs: readonly Job[]; readonly missing: readonly string[] }> {
  const missing: string[] = []
  const rounds = repeat ?? 1
  const jobs: Job[] = []
  const oracle = await scripts.oracle(task).catch((error: unknown) => {
    if (!isPaddockError(error) || (error.code !== 'TASK_INVALID' && error.code !== 'TASK_UNSUPPORTED')) throw error
    missing.push(firstLine(error))
    return null
  })
  if (oracle !== null) jobs.push({ role: 'oracle', script: oracle, rounds: repeat ?? (published ? 1 : 2) })
  const nullAgent: Job = { role: 'null_agent', script: scripts.nullAgent, rounds }
  if (published) return { jobs: [...jobs, nullAgent], missing }
  const cheats = await scripts.cheats(task)
  if (cheats.length === 0) {
    const error = new PaddockError('TASK_INVALID', `Task ${task.name} knows no cheat`, {
      data: { task: task.name },
      fix: 'Add one attempt that fakes success, such as cheats/hard-coded.sh; it must score 0. Published tasks: --published.',
    })
    missing.push(error.line())
  }
  const solutions = (await scripts.solutions(task)).filter((script) => script.name !== oracle?.name)
  jobs.push(
    ...solutions.map((script) => ({ role: 'solution' as const, script, rounds })),
    nullAgent,
    ...cheats.map((script) => ({ role: 'cheat' as const, script, rounds })),
    ...(await scripts.distractors(task)).map((script) => ({ role: 'distractor' as const, script, rounds })),
  )
  return { jobs, missing }
}

const nameOf = ({ role, script }: Job): string => `${role} ${script.name}`

async function prove(
  task: Task,
  job: Job,
  round: number,
  o: ValidateOptions & Pick<AttemptOptions, 'proofs' | 'onProof'>,
): Promise<ScriptProof> {
  o.signal.throwIfAborted()
  const started = systemClock.monotonic()
  let left = ''
  const onRan: AttemptOptions['onRan'] = (steps) => {
    const bad = steps.find(({ status }) => status !== 'ok')
    if (bad !== undefined && left === '') left = `its script ended as ${bad.status} (${lastWords(bad.text)}); `
  }
  const verdict = await (o.attempt ?? attempt)({ ...o, task, script: job.script, onRan })
  const { holds, demand } = judge(job.role, verdict, o.published ?? false)
  const why =
    verdict.reward === null ? `${left}${wordsOf(verdict)}` : `must score ${demand}, got ${left}${wordsOf(verdict)}`
  const durationMs = systemClock.monotonic() - started
  return { name: nameOf(job), role: job.role, round, verdict, holds, why, durationMs }
}

function judge(
  role: ScriptProof['role'],
  { status, reward }: VerdictDraft,
  published: boolean,
): { readonly holds: boolean; readonly demand: string } {
  if (role === 'oracle' || role === 'solution') return { holds: status === 'scored' && reward === 1, demand: '1' }
  if (role === 'distractor' || (role === 'null_agent' && published)) {
    return { holds: reward !== null && reward < 1, demand: 'less than 1' }
  }
  return { holds: reward === 0, demand: '0' }
}

/** Components of a published reward may be times or counts of its own; what it comes to is compared. */
function differenceOf(job: Job, proofs: readonly ScriptProof[], published: boolean): readonly string[] {
  const verdicts = proofs.filter(({ name }) => name === nameOf(job)).map(({ verdict }) => verdict)
  const [first, ...others] = verdicts
  if (first === undefined || verdicts.some(({ status }) => status === 'infra_error')) return []
  const isSame = (verdict: VerdictDraft): boolean =>
    shortOf(verdict) === shortOf(first) && (published || isDeepStrictEqual(verdict.components, first.components))
  if (others.every(isSame)) return []
  const said = verdicts.map((verdict) =>
    published || verdict.reward === null
      ? shortOf(verdict)
      : `${shortOf(verdict)} ${JSON.stringify(verdict.components)}`,
  )
  return [`${nameOf(job)}: not the same each time: ${said.join(', ')}`]
}
