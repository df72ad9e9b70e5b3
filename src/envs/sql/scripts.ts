import { isDeepStrictEqual } from 'node:util'
import { generatedPlace, PaddockError } from '../../core/index.ts'
import type { NamedScript, ScriptStep } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import type { SqlData } from './data.ts'
import { readTaskFiles } from './file.ts'
import { generateRecords } from './generate/index.ts'
import type { SqlTaskEntry } from './task-file.ts'

type SqlTask = TaskOf<SqlData>

/** Looks around, tries the gold, submits it. */
export async function oracleOf(task: SqlTask): Promise<NamedScript> {
  return { ...scriptOf('oracle', task.data.golds[0] ?? ''), weight: 3 }
}

/** The further golds. */
export async function solutionsOf(task: SqlTask): Promise<readonly NamedScript[]> {
  return task.data.golds.slice(1).map((gold, i) => scriptOf(`gold-${i + 2}`, gold))
}

/** The cheats of the task file: submissions that must score 0. */
export async function cheatsOf(task: SqlTask): Promise<readonly NamedScript[]> {
  const { cheats } = await entryOf(task)
  return cheats.map(({ name, sql }) => ({ name, weight: 1, script: { steps: [submit(sql)] } }))
}

/** Wrong queries that an honest agent writes. */
export async function distractorsOf(task: SqlTask): Promise<readonly NamedScript[]> {
  const { weak } = await entryOf(task)
  return weak.map(({ name, sql }) => scriptOf(name, sql))
}

// Cheats and weak attempts stand in the task file and not in Task.data: a further cheat makes no other task.
async function entryOf(task: SqlTask): Promise<SqlTaskEntry> {
  const place = generatedPlace(task.source)
  if (place !== null) {
    const made = generateRecords({ seed: place.seeds[0], level: place.levels[0] })
    if (made.instruction === task.instruction && isDeepStrictEqual(made.data, task.data)) return made.entry
    throw new PaddockError('TASK_INVALID', `Task ${task.name} is not what ${task.source} gives any more`, {
      fix: 'Generate it anew.',
    })
  }
  const entry = (await readTaskFiles(task.source, () => undefined))
    .flatMap(({ tasks }) => tasks)
    .find(({ name }) => name === task.name)
  if (entry !== undefined) return entry
  throw new PaddockError('TASK_INVALID', `Task ${task.name} is not in ${task.source} any more`)
}

function scriptOf(name: string, sql: string): NamedScript {
  const steps: readonly ScriptStep[] = [
    { tool: 'list_tables', args: {} },
    { tool: 'execute_sql', args: { sql } },
    submit(sql),
    { say: 'I have handed it in.' },
  ]
  return { name, weight: 1, script: { steps } }
}

function submit(sql: string): ScriptStep {
  return { tool: 'submit_sql', args: { sql } }
}
