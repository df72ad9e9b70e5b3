import { readFile } from 'node:fs/promises'
import { PaddockError } from '../../core/index.ts'
import { importFile, importQuestions } from './imports/index.ts'
import { type SqlTaskFile, taskFileSchema } from './task-file.ts'

/**
 * Reads a file of tasks: one database with its tasks, or a data set of the field (Spider, BIRD, NeMo Gym, Spider2-Lite,
 * SkyRL-SQL), which is one such file per database. Throws `TASK_INVALID` with file, place and fix.
 */
export async function readTaskFiles(path: string): Promise<readonly SqlTaskFile[]> {
  const invalid = (place: string, what: string, cause?: unknown) =>
    new PaddockError('TASK_INVALID', `${path}: ${place === '' ? '' : `${place}: `}${what}`, {
      cause,
      data: { file: path, place },
      fix: place === '' ? 'Correct the file.' : `Correct ${place}.`,
    })
  const imported = await importFile(path)
  if (imported !== null) return imported
  let raw: unknown
  try {
    raw = JSON.parse(await readFile(path, 'utf8'))
  } catch (cause) {
    throw invalid('', `cannot be read as JSON: ${String(cause)}`, cause)
  }
  if (Array.isArray(raw)) return importQuestions(raw, path)
  const parsed = taskFileSchema.safeParse(raw)
  if (parsed.success) return [parsed.data]
  const issue = parsed.error.issues[0]
  throw invalid(issue?.path.join('.') ?? '', issue?.message ?? 'does not fit', parsed.error)
}
