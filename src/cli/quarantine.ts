import { readFile, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import { PaddockError } from '../core/index.ts'
import type { ValidatedTask } from './validation-results.ts'

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
