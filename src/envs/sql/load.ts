import { readdir, readFile, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { PaddockError, sha256, type Task } from '../../core/index.ts'
import { sqlPresets, type SqlSemantics } from '../../reward/index.ts'
import { makeTask } from '../task.ts'
import type { LoadOptions } from '../contract.ts'
import type { SqlData } from './data.ts'
import { readTaskFile, type SqlTaskEntry, type SqlTaskFile } from './file.ts'

/**
 * Reads one task file (`*.json`), or all of a directory. Throws `TASK_INVALID` for the first that cannot be used, for
 * two tasks of one name or one question, and when there is none.
 */
export async function loadSqlTasks(path: string, o: LoadOptions): Promise<readonly Task[]> {
  const tasks: Task[] = []
  for (const file of await filesAt(path)) {
    o.signal?.throwIfAborted()
    tasks.push(...(await loadFile(file)))
  }
  for (const key of ['name', 'instruction'] as const) {
    const twice = tasks.find((task, i) => tasks.findIndex((other) => other[key] === task[key]) < i)
    if (twice !== undefined) {
      throw invalid(twice.source, `two tasks have the ${key} of ${twice.name}`, `Give each task a ${key} of its own.`)
    }
  }
  return tasks.toSorted((a, b) => (a.name < b.name ? -1 : 1))
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

async function loadFile(file: string): Promise<readonly Task[]> {
  const parsed = await readTaskFile(file)
  const database = await databaseOf(file, parsed)
  return parsed.tasks.map((entry) =>
    makeTask({
      name: entry.name,
      environment: 'sql',
      instruction: entry.evidence === undefined ? entry.question : `${entry.question}\n\nKnow that: ${entry.evidence}`,
      split: entry.split,
      data: dataOf(entry, parsed, database),
      source: file,
    }),
  )
}

async function databaseOf(file: string, { database }: SqlTaskFile): Promise<SqlData['database']> {
  const { name, script, file: beside } = database
  const at = join(dirname(file), script ?? beside ?? '')
  const bytes = await readFile(at).catch((cause: unknown) => {
    throw invalid(file, `the database ${at} cannot be read`, 'Paths start at the task file.', cause)
  })
  if (script !== undefined) return { kind: 'script', name, script: bytes.toString('utf8') }
  return { kind: 'file', name, file: beside ?? '', sha256: sha256(bytes) }
}

function dataOf(entry: SqlTaskEntry, file: SqlTaskFile, database: SqlData['database']): SqlData {
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
    limits: file.limits,
    difficulty: entry.difficulty ?? null,
  }
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
  }
}

function invalid(file: string, what: string, fix: string, cause?: unknown): PaddockError {
  return new PaddockError('TASK_INVALID', `${file}: ${what}`, { cause, data: { file }, fix })
}
