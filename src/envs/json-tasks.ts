import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { z } from 'zod'
import { makeTask, PaddockError, type Task } from '../core/index.ts'
import type { LoadOptions } from './contract.ts'

const fileShape = z.strictObject({
  instruction: z.string().min(1),
  split: z.string().default('train'),
  data: z.unknown(),
})

/**
 * Tasks that stand in JSON files, `{"instruction", "split", "data"}`: `path` is one such file or a directory of them,
 * read in the order of their names, which are the names of the tasks. Throws `TASK_INVALID` with file, place and fix for
 * the first that cannot be read, where nobody is told of each (`onRefused`).
 */
export async function loadJsonTasks(
  path: string,
  o: LoadOptions & { readonly environment: string; readonly data: z.ZodType },
): Promise<readonly Task[]> {
  const files = await filesOf(path)
  if (files.length === 0) throw invalid(path, '', 'there are no .json files', 'Put one file per task there.')
  const each = files.map(async (file) => {
    try {
      return [await readTask(file, o)]
    } catch (error) {
      if (o.onRefused === undefined) throw error
      o.onRefused(basename(file, '.json'), error)
      return []
    }
  })
  return (await Promise.all(each)).flat()
}

async function filesOf(path: string): Promise<readonly string[]> {
  try {
    if ((await stat(path)).isFile()) return [path]
    const names = (await readdir(path)).filter((name) => name.endsWith('.json'))
    return names.toSorted().map((name) => join(path, name))
  } catch (cause) {
    throw invalid(path, '', String(cause), 'Name a task file, or a directory of them.', cause)
  }
}

async function readTask(file: string, o: { readonly environment: string; readonly data: z.ZodType }): Promise<Task> {
  let json: unknown
  try {
    json = JSON.parse(await readFile(file, 'utf8'))
  } catch (cause) {
    throw invalid(file, '', `it is not JSON: ${String(cause)}`, 'Correct the file.', cause)
  }
  const parsed = fileShape.extend({ data: o.data }).safeParse(json)
  if (!parsed.success) {
    const place = parsed.error.issues[0]?.path.join('.') ?? ''
    throw invalid(file, place, z.prettifyError(parsed.error), `Correct ${place === '' ? 'the file' : place}.`)
  }
  const { instruction, split, data } = parsed.data
  const { environment } = o
  return makeTask({ name: basename(file, '.json'), environment, instruction, split, data, source: file })
}

function invalid(file: string, place: string, what: string, fix: string, cause?: unknown): PaddockError {
  return new PaddockError('TASK_INVALID', `${file}: ${what}`, { data: { file, place }, fix, cause })
}
