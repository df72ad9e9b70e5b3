import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { makeTask, PaddockError, type Task } from '../../core/index.ts'
import { sqlPresets, type SqlSemantics } from '../../reward/index.ts'
import type { LoadOptions } from '../contract.ts'
import { type Refuse, refuserOf } from '../refuse.ts'
import { type SqlData, sqlDataSchema } from './data.ts'
import { engineOf } from './engines/index.ts'
import { readTaskFiles } from './file.ts'
import type { SqlTaskEntry, SqlTaskFile } from './task-file.ts'

/**
 * Reads one task file (`*.json`), or all of a directory. Throws `TASK_INVALID` for the first task that cannot be used, for
 * two tasks of one name or one question, where nobody is told of each (`onRefused`); and when there is none.
 */
export async function loadSqlTasks(path: string, o: LoadOptions): Promise<readonly Task[]> {
  const refuse = refuserOf(o)
  const tasks: Task[] = []
  for (const file of await filesAt(path)) {
    o.signal?.throwIfAborted()
    try {
      tasks.push(...(await loadFile(file, refuse)))
    } catch (error) {
      refuse(basename(file), error)
    }
  }
  const named = distinct(tasks, 'name', (task) => task.name, refuse)
  return distinct(
    named,
    'question',
    (task) => `${sqlDataSchema.parse(task.data).database.name} ${task.instruction}`,
    refuse,
  ).toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

function distinct(tasks: readonly Task[], what: string, key: (task: Task) => string, refuse: Refuse): readonly Task[] {
  const seen = new Set<string>()
  return tasks.filter((task) => {
    const isNew = !seen.has(key(task))
    seen.add(key(task))
    const words = `two tasks have the ${what} of ${task.name}`
    if (!isNew) refuse(task.name, invalid(task.source, words, `Give each task a ${what} of its own.`))
    return isNew
  })
}

async function filesAt(path: string): Promise<readonly string[]> {
  const root = resolve(path)
  const found = await stat(root).catch((cause: unknown) => {
    throw invalid(path, 'cannot be read', 'Check the path.', cause)
  })
  if (found.isFile()) return [root]
  const names = (await readdir(root)).filter((name) => name.endsWith('.json')).toSorted()
  if (names.length > 0) return names.map((name) => join(root, name))
  throw invalid(path, 'holds no task', 'Give a .json file of tasks, or a directory of such files.')
}

async function loadFile(file: string, refuse: Refuse): Promise<readonly Task[]> {
  const tasks: Task[] = []
  for (const parsed of await readTaskFiles(file, refuse)) {
    requireFiles(file, parsed)
    const database = await databaseOf(file, parsed)
    for (const entry of parsed.tasks) {
      try {
        requireAble(file, parsed, entry)
        tasks.push(taskOf(entry, parsed, database, file))
      } catch (error) {
        refuse(entry.name, error)
      }
    }
  }
  return tasks
}

function taskOf(entry: SqlTaskEntry, parsed: SqlTaskFile, database: SqlData['database'], file: string): Task {
  return makeTask({
    name: entry.name,
    environment: 'sql',
    instruction: entry.evidence === undefined ? entry.question : `${entry.question}\n\nKnow that: ${entry.evidence}`,
    split: entry.split,
    data: dataOf(entry, parsed, database),
    source: file,
  })
}

/** What an engine cannot do is refused here and not found out by a verdict. */
function requireFiles(file: string, { database }: SqlTaskFile): void {
  const { title, takesFiles } = engineOf({ engine: engineKey(database.engine) })
  if (database.file === undefined || takesFiles) return
  throw invalid(file, `database.file: ${title} takes a script`, 'Give database.script, which writes the SQL.')
}

function requireAble(file: string, { database }: SqlTaskFile, task: SqlTaskEntry): void {
  const { title, countsSteps } = engineOf({ engine: engineKey(database.engine) })
  if (!countsSteps && task.efficiencyBy === 'steps') {
    throw invalid(file, `${task.name}: efficiencyBy: ${title} counts no steps`, 'Use efficiencyBy "time".')
  }
  if (task.mode === 'write' && task.efficiencyBy === 'time') {
    throw invalid(file, `${task.name}: efficiencyBy: a script is not timed`, 'Leave efficiencyBy out.')
  }
}

// SQLite stands in Task.data as nothing, so that tasks from before there were other engines are the same tasks.
function engineKey(engine: SqlTaskFile['database']['engine']): SqlData['database']['engine'] {
  return engine === 'sqlite' ? undefined : engine
}

async function databaseOf(file: string, { database }: SqlTaskFile): Promise<SqlData['database']> {
  const { name, script, file: beside } = database
  const engine = engineKey(database.engine)
  const own = engine === undefined ? {} : { engine }
  const at = join(dirname(file), script ?? beside ?? '')
  try {
    if (script !== undefined) return { kind: 'script', name, ...own, script: await readFile(at, 'utf8') }
    const hash = createHash('sha256')
    await pipeline(createReadStream(at), hash)
    return { kind: 'file', name, ...own, file: beside ?? '', sha256: hash.digest('hex') }
  } catch (cause) {
    throw invalid(file, `the database ${at} cannot be read`, 'Paths start at the task file.', cause)
  }
}

/** `Task.data` of a task of a file. */
export function dataOf(entry: SqlTaskEntry, file: SqlTaskFile, database: SqlData['database']): SqlData {
  return {
    database,
    mode: entry.mode,
    golds: entry.gold,
    semantics: semanticsOf(entry.compare),
    conditionColumns: entry.conditionColumns ?? null,
    probes: entry.probes,
    ignoreColumns: entry.ignoreColumns.map((name) => name.toLowerCase()),
    neighbours: entry.neighbours ?? file.neighbours,
    efficiencyWeight: entry.efficiencyWeight,
    ...(isTimed(entry, database) ? { efficiencyBy: 'time' as const } : {}),
    ...(entry.exploration === undefined ? {} : { exploration: entry.exploration }),
    ...(entry.formatWeight === undefined ? {} : { formatWeight: entry.formatWeight }),
    ...(entry.stepValues === undefined ? {} : { stepValues: entry.stepValues }),
    limits: file.limits,
    difficulty: entry.difficulty ?? null,
  }
}

function isTimed({ efficiencyBy, efficiencyWeight }: SqlTaskEntry, database: SqlData['database']): boolean {
  return efficiencyBy === 'time' || (efficiencyWeight > 0 && !engineOf(database).countsSteps)
}

function semanticsOf({ preset, ...own }: SqlTaskEntry['compare']): SqlSemantics {
  const base = sqlPresets[preset]
  return {
    rows: own.rows ?? base.rows,
    columns: own.columns ?? base.columns,
    tolerance: own.tolerance ?? base.tolerance,
    nulls: own.nulls ?? base.nulls,
    numberTexts: own.numberTexts ?? base.numberTexts,
    emptyTables: own.emptyTables ?? base.emptyTables,
    ...((own.distinct ?? base.distinct) === 'removed' ? { distinct: 'removed' as const } : {}),
    ...((own.repairs ?? base.repairs) === 'spider' ? { repairs: 'spider' as const } : {}),
  }
}

function invalid(file: string, what: string, fix: string, cause?: unknown): PaddockError {
  return new PaddockError('TASK_INVALID', `${file}: ${what}`, { cause, data: { file }, fix })
}
