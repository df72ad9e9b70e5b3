import { appendFileSync } from 'node:fs'
import { readFile, truncate, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import { PaddockError } from '../core/index.ts'
import type { ValidationRow } from '../envs/index.ts'

export const validationStatuses = ['proven', 'refuted', 'flaky', 'infra', 'unproven', 'unbuilt', 'refused'] as const

/** Statuses that may differ the next time. */
const lost: ReadonlySet<string> = new Set(['infra', 'unbuilt'])

const proof = z.object({
  name: z.string(),
  role: z.enum(['oracle', 'solution', 'null_agent', 'cheat', 'distractor']),
  round: z.number(),
  holds: z.boolean(),
  why: z.string(),
  status: z.string(),
  reward: z.number().nullable(),
  components: z.record(z.string(), z.number()),
  evidence: z.string(),
  durationMs: z.number(),
})

/** What makes two validations of a task the same question. */
const question = z.object({
  /** Version of the environment's verifier. */
  verifier: z.string(),
  published: z.boolean(),
})
type ValidationQuestion = z.infer<typeof question>

const validated = z.object({
  ...question.shape,
  task: z.string(),
  /** Null: it does not load. */
  digest: z.string().nullable(),
  status: z.enum(validationStatuses),
  problems: z.array(z.string()),
  notes: z.array(z.string()).default([]),
  durationMs: z.number(),
  proofs: z.array(proof),
})

/** One task of `paddock validate --json`, and one line of its `--results`. */
export type ValidatedTask = z.infer<typeof validated>

/** A row as it is printed and kept. */
export function validatedTask(row: ValidationRow, asked: ValidationQuestion): ValidatedTask {
  return {
    ...asked,
    task: row.name,
    digest: row.task?.digest ?? null,
    status: row.status,
    problems: [...row.problems],
    notes: [...(row.notes ?? [])],
    durationMs: Math.round(row.durationMs),
    proofs: row.proofs.map(({ verdict, name, role, round, holds, why, durationMs }) => ({
      name,
      role,
      round,
      holds,
      why,
      status: verdict.status,
      reward: verdict.reward,
      components: { ...verdict.components },
      evidence: verdict.evidence,
      durationMs: Math.round(durationMs),
    })),
  }
}

/** Adds a task to a file of results at once, so that a process that is killed loses none. */
export function appendResult(file: string, task: ValidatedTask): void {
  appendFileSync(file, `${JSON.stringify(task)}\n`)
}

/**
 * Tasks of a file of results that were asked the same, by digest; none if it does not exist. Tasks that our own machinery failed, or that
 * have no digest, are left out. A last line that was cut is removed from the file. Throws `USAGE` for a file of something else.
 */
export async function readResults(
  file: string,
  asked: ValidationQuestion,
): Promise<ReadonlyMap<string, ValidatedTask>> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  const tasks = (whole === '' ? text : whole).split('\n').flatMap((line) => (line === '' ? [] : [parsed(line, file)]))
  if (whole !== '' && whole !== text) await truncate(file, Buffer.byteLength(whole))
  const isSame = ({ verifier, published }: ValidatedTask): boolean =>
    verifier === asked.verifier && published === asked.published
  const kept = tasks.filter((task) => isSame(task) && !lost.has(task.status))
  return new Map(kept.flatMap((task) => (task.digest === null ? [] : [[task.digest, task]])))
}

function parsed(line: string, file: string): ValidatedTask {
  try {
    return validated.parse(JSON.parse(line))
  } catch (cause) {
    throw new PaddockError('USAGE', `${file} is not a file of validation results`, {
      cause,
      fix: 'Name a file that `paddock validate --results` wrote, or one that does not exist yet.',
    })
  }
}

const quarantineSchema = z.object({
  tasks: z.array(z.object({ name: z.string(), digest: z.string(), problems: z.array(z.string()) })),
})

/**
 * Writes the refuted and flaky tasks of a validation with what refuted them. By digest: a task that was corrected is another one, and
 * is out. Rows that our own machinery spoilt say nothing of their tasks and stay out of it.
 */
export async function writeQuarantine(file: string, rows: readonly ValidatedTask[]): Promise<number> {
  const wrong = rows.filter(({ status }) => status === 'refuted' || status === 'flaky')
  const tasks = wrong.flatMap(({ task, digest, problems }) =>
    digest === null ? [] : [{ name: task, digest, problems }],
  )
  await writeFile(file, `${JSON.stringify({ tasks }, null, 2)}\n`)
  return tasks.length
}

/** Digests of the tasks in quarantine. Throws `USAGE` for a file that is none. */
export async function readQuarantine(file: string): Promise<readonly string[]> {
  try {
    return quarantineSchema.parse(JSON.parse(await readFile(file, 'utf8'))).tasks.map(({ digest }) => digest)
  } catch (cause) {
    throw new PaddockError('USAGE', `${file} is not a quarantine file`, {
      cause,
      fix: 'Write it with `paddock validate <tasks> --quarantine <file>`.',
    })
  }
}
