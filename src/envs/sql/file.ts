import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'
import type { Refuse } from '../refuse.ts'
import { importFile, importQuestions } from './imports/index.ts'
import { type SqlTaskFile, taskFileSchema, taskSchema } from './task-file.ts'

/** The same file with its tasks as they stand there. */
const frameSchema = taskFileSchema.extend({ tasks: z.array(z.unknown()).min(1) })
const namedSchema = z.looseObject({ name: z.string().min(1) })

/**
 * Reads a file of tasks: one database with its tasks, or a data set of the field (Spider, BIRD, NeMo Gym, Spider2-Lite,
 * SkyRL-SQL), which is one such file per database. Throws `TASK_INVALID` with file, place and fix; of a task that cannot be
 * read beside others `refuse` is told, by its name or its place.
 */
export async function readTaskFiles(path: string, refuse: Refuse): Promise<readonly SqlTaskFile[]> {
  const invalid = (place: string, what: string, cause?: unknown) =>
    new PaddockError('TASK_INVALID', `${path}: ${place === '' ? '' : `${place}: `}${what}`, {
      cause,
      data: { file: path, place },
      fix: place === '' ? 'Correct the file.' : `Correct ${place}.`,
    })
  const imported = await importFile(path, refuse)
  if (imported !== null) return imported
  let raw: unknown
  try {
    raw = JSON.parse(await readFile(path, 'utf8'))
  } catch (cause) {
    throw invalid('', `cannot be read as JSON: ${String(cause)}`, cause)
  }
  if (Array.isArray(raw)) return importQuestions(raw, path, refuse)
  const firstOf = ({ issues: [issue] }: z.ZodError, ...at: readonly (string | number)[]) =>
    invalid([...at, ...(issue?.path ?? [])].join('.'), issue?.message ?? 'does not fit')
  const frame = frameSchema.safeParse(raw)
  if (!frame.success) throw firstOf(frame.error)
  const tasks = frame.data.tasks.flatMap((one, i) => {
    const parsed = taskSchema.safeParse(one)
    if (parsed.success) return [parsed.data]
    refuse(namedSchema.safeParse(one).data?.name ?? `${basename(path)} tasks.${i}`, firstOf(parsed.error, 'tasks', i))
    return []
  })
  return tasks.length === 0 ? [] : [{ ...frame.data, tasks }]
}
