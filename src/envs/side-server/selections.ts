import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'
import { scriptStepSchema } from '../run-script.ts'

const script = z.array(scriptStepSchema)

/** What may be known of a task that somebody else made. */
export const knownShape = {
  /** Steps that earn 1, where somebody knows them: for `paddock validate` and the scripted engine. */
  oracle: script.optional(),
  /** Steps that must earn 0. */
  cheats: z.array(script).optional(),
}

/** What a file of tasks says of rows, wherever those are. */
export const selectionShape = {
  first: z.int().min(0).default(0),
  /** Left out: all that follow. */
  count: z.int().min(1).optional(),
  /** What is known of rows, by their place. */
  known: z.record(z.string().regex(/^\d+$/), z.strictObject(knownShape)).default({}),
}

/** The files of selections at `path`, in the order of their names. Throws `TASK_INVALID`. */
export async function selectionsAt<T>(
  path: string,
  schema: z.ZodType<T>,
): Promise<readonly { readonly file: string; readonly selected: T }[]> {
  const files = await filesOf(path)
  return Promise.all(files.map(async (file) => ({ file, selected: await selectionIn(file, schema) })))
}

/** Throws `TASK_INVALID` where something is said of a row that is not among those. */
export function requireKnown(file: string, known: Readonly<Record<string, unknown>>, rows: readonly number[]): void {
  const stray = Object.keys(known).find((at) => !rows.includes(Number(at)))
  if (stray !== undefined) throw invalidSelection(file, `known.${stray} is of a row that is not among its rows`)
}

/** `TASK_INVALID` of a file of selections. */
export function invalidSelection(file: string, what: string, cause?: unknown): PaddockError {
  return new PaddockError('TASK_INVALID', `${file}: ${what}`, {
    data: { file, place: '' },
    fix: 'A file of tasks names rows, as the guide of its environment says: {"first": 0, "count": 8}.',
    ...(cause === undefined ? {} : { cause }),
  })
}

async function filesOf(path: string): Promise<readonly string[]> {
  try {
    if ((await stat(path)).isFile()) return [path]
    const names = (await readdir(path)).filter((name) => name.endsWith('.json')).toSorted()
    if (names.length > 0) return names.map((name) => join(path, name))
  } catch (cause) {
    throw invalidSelection(path, String(cause), cause)
  }
  throw invalidSelection(path, 'there are no .json files')
}

async function selectionIn<T>(file: string, schema: z.ZodType<T>): Promise<T> {
  let json: unknown
  try {
    json = JSON.parse(await readFile(file, 'utf8'))
  } catch (cause) {
    throw invalidSelection(file, `it is not JSON: ${String(cause)}`, cause)
  }
  const parsed = schema.safeParse(json)
  if (!parsed.success) throw invalidSelection(file, z.prettifyError(parsed.error))
  return parsed.data
}
