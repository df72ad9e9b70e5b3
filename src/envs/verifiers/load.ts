import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { z } from 'zod'
import { makeTask, PaddockError, type Task } from '../../core/index.ts'
import { selectionSchema, type VerifiersData } from './data.ts'
import { type Loading, Sidecar } from './sidecar.ts'

const toolName = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/
/** What an agent says words with where they are answered. */
export const sayTool = 'say'

/** The tasks that files of selections name, in the order of the files. Throws `TASK_INVALID`, `ENVIRONMENT_INVALID`, `ENVIRONMENT_SERVER_FAILED`. */
export async function loadVerifiersTasks(
  path: string,
  { loading, signal }: { readonly loading: Loading; readonly signal: AbortSignal },
): Promise<readonly Task[]> {
  const files = await filesOf(path)
  const selections = await Promise.all(files.map(async (file) => ({ file, ...(await selectionOf(file)) })))
  await using sidecar = await Sidecar.start(loading, signal)
  const tasks: Task[] = []
  for (const { file, dataset, first, count, split, known } of selections) {
    const { total, rows } = await sidecar.rows({ dataset, first, count: count ?? null })
    signal.throwIfAborted()
    if (rows.length === 0) throw invalid(file, `the data set ${dataset} has ${total} rows, and none from ${first} on`)
    const stray = Object.keys(known).find((at) => !rows.some((row) => row.at === Number(at)))
    if (stray !== undefined) throw invalid(file, `known.${stray} is of a row that is not among its rows`)
    for (const row of rows) {
      requireTools(loading.name, row.tools, row.speaks)
      const data: VerifiersData = { ...row, ...known[String(row.at)] }
      tasks.push(
        makeTask({
          name: `${basename(file, '.json')}-${String(row.at).padStart(String(total - 1).length, '0')}`,
          environment: loading.name,
          instruction: row.user,
          split: split ?? (dataset === 'train' ? 'train' : 'test'),
          data,
          source: file,
        }),
      )
    }
  }
  return tasks
}

function requireTools(environment: string, tools: VerifiersData['tools'], speaks: boolean): void {
  const odd = tools.find(({ name }) => !toolName.test(name) || (speaks && name === sayTool))
  if (odd === undefined) return
  const what = `The environment ${environment} has a tool ${JSON.stringify(odd.name)}, which cannot be offered`
  throw new PaddockError('ENVIRONMENT_INVALID', what, { data: { environment, part: 'tools' } })
}

async function filesOf(path: string): Promise<readonly string[]> {
  try {
    if ((await stat(path)).isFile()) return [path]
    const names = (await readdir(path)).filter((name) => name.endsWith('.json')).toSorted()
    if (names.length > 0) return names.map((name) => join(path, name))
  } catch (cause) {
    throw invalid(path, String(cause), cause)
  }
  throw invalid(path, 'there are no .json files')
}

async function selectionOf(file: string): Promise<z.infer<typeof selectionSchema>> {
  let json: unknown
  try {
    json = JSON.parse(await readFile(file, 'utf8'))
  } catch (cause) {
    throw invalid(file, `it is not JSON: ${String(cause)}`, cause)
  }
  const parsed = selectionSchema.safeParse(json)
  if (!parsed.success) throw invalid(file, z.prettifyError(parsed.error))
  return parsed.data
}

function invalid(file: string, what: string, cause?: unknown): PaddockError {
  return new PaddockError('TASK_INVALID', `${file}: ${what}`, {
    data: { file, place: '' },
    fix: 'A file of tasks names rows: {"dataset": "train", "first": 0, "count": 8}.',
    ...(cause === undefined ? {} : { cause }),
  })
}
