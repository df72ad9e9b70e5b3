import { basename } from 'node:path'
import { makeTask, PaddockError, type Task } from '../../core/index.ts'
import { invalidSelection, requireKnown, selectionsAt } from '../side-server/index.ts'
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
  const selections = await selectionsAt(path, selectionSchema)
  await using sidecar = await Sidecar.start(loading, signal)
  const tasks: Task[] = []
  for (const { file, selected } of selections) {
    const { dataset, first, count, split, known } = selected
    const { total, rows } = await sidecar.rows({ dataset, first, count: count ?? null })
    signal.throwIfAborted()
    if (rows.length === 0) {
      throw invalidSelection(file, `the data set ${dataset} has ${total} rows, and none from ${first} on`)
    }
    requireKnown(
      file,
      known,
      rows.map(({ at }) => at),
    )
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
