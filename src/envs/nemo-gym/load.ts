import { readFile } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { makeTask, PaddockError, type Task } from '../../core/index.ts'
import { invalidSelection, requireKnown, selectionsAt } from '../side-server/index.ts'
import { type NemoGymData, selectionSchema, shown } from './data.ts'
import { programOf, type Served } from './session.ts'

const toolName = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/
/** Routes of every resources server, which no tool can have the name of. */
const routes = new Set(['seed_session', 'close_session', 'verify', 'aggregate_metrics', 'reverify_mode', 'mcp'])

/** The tasks that files of selections name, in the order of the files. Throws `TASK_INVALID`, `ENVIRONMENT_INVALID`, `ENVIRONMENT_SERVER_FAILED`. */
export async function loadNemoGymTasks(path: string, served: Served, signal: AbortSignal): Promise<readonly Task[]> {
  const selections = await selectionsAt(path, selectionSchema)
  const beside = dirname(await programOf(served))
  signal.throwIfAborted()
  const each = selections.map(async ({ file, selected }) => {
    const { rows, first, count, split, known } = selected
    const lines = await linesOf(file, resolve(beside, rows))
    const picked = lines.slice(first, count === undefined ? undefined : first + count)
    if (picked.length === 0) throw invalidSelection(file, `${rows} has ${lines.length} rows, and none from ${first} on`)
    const places = picked.map((_, offset) => first + offset)
    requireKnown(file, known, places)
    return picked.map((line, offset): Task => {
      const at = first + offset
      const data: NemoGymData = { ...rowAt(file, line, at), at, ...known[String(at)] }
      requireTools(served.name, data.tools)
      const name = `${basename(file, '.json')}-${String(at).padStart(String(lines.length - 1).length, '0')}`
      return makeTask({ name, environment: served.name, instruction: data.user, split, data, source: file })
    })
  })
  return (await Promise.all(each)).flat()
}

async function linesOf(file: string, rows: string): Promise<readonly string[]> {
  try {
    return (await readFile(rows, 'utf8')).split('\n').filter((line) => line.trim() !== '')
  } catch (cause) {
    throw invalidSelection(file, `its rows cannot be read: ${String(cause)}`, cause)
  }
}

function rowAt(file: string, line: string, at: number): ReturnType<typeof shown> {
  try {
    return shown(JSON.parse(line))
  } catch (cause) {
    throw invalidSelection(
      file,
      `row ${at} cannot be a task: ${cause instanceof Error ? cause.message : String(cause)}`,
      cause,
    )
  }
}

function requireTools(environment: string, tools: NemoGymData['tools']): void {
  const odd = tools.find(({ name }) => !toolName.test(name) || routes.has(name))
  if (odd === undefined) return
  const what = `The environment ${environment} has a tool ${JSON.stringify(odd.name)}, which cannot be offered`
  throw new PaddockError('ENVIRONMENT_INVALID', what, { data: { environment, part: 'tools' } })
}
