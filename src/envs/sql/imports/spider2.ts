import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'
import type { SqlTaskFile } from '../task-file.ts'
import { parseCsv, valuesQuery } from './csv.ts'
import { databaseFile } from './databases.ts'
import { type ImportedQuestion, plain, taskFiles } from './task-files.ts'

/** A row of `spider2-lite.jsonl`; instances of the SQLite part begin with `local`. */
const questionRow = z.looseObject({
  instance_id: z.string(),
  db: z.string(),
  question: z.string(),
  external_knowledge: z.string().nullish(),
})
const columns = z.array(z.int())
/** A row of `spider2lite_eval.jsonl`: columns of the gold that count, for all golds or one list for each. */
const standardRow = z.looseObject({
  instance_id: z.string(),
  condition_cols: z.union([columns, z.array(columns)]),
  ignore_order: z.boolean(),
})

const goldFolder = join('evaluation_suite', 'gold')

/** Whether rows look like Spider2's. */
export function isSpider2(rows: readonly unknown[]): boolean {
  return questionRow.safeParse(rows[0]).success
}

/**
 * The SQLite questions of Spider2-Lite from its own folder (`spider2-lite/`, xlang-ai/Spider2 at 0c85cc2): gold tables are
 * the CSV files of `evaluation_suite/gold/exec_result` (`<id>.csv`, `<id>_a.csv`, …), each of which is right, cut to its
 * `condition_cols`; databases at `resource/databases/spider2-localdb`. Questions of BigQuery and Snowflake are left out.
 * Throws `TASK_INVALID`.
 */
export async function importSpider2(raw: readonly unknown[], path: string): Promise<readonly SqlTaskFile[]> {
  const root = dirname(path)
  const rows = parseRows(raw, questionRow, path)
  const standardPath = join(root, goldFolder, 'spider2lite_eval.jsonl')
  const standards = new Map(
    parseRows(readLines(await read(standardPath, path), standardPath), standardRow, standardPath).map((one) => [
      one.instance_id,
      one,
    ]),
  )
  const golds = await readdir(join(root, goldFolder, 'exec_result')).catch(() => [])
  const local = rows.filter(({ instance_id: id }) => id.startsWith('local'))
  if (local.length === 0) throw invalid(path, 'has no question of SQLite', 'Their instance_id begins with "local".')
  const questions = local.map(async (one): Promise<ImportedQuestion> => {
    const standard = standards.get(one.instance_id)
    const files = golds.filter((file) => goldName(one.instance_id).test(file)).toSorted()
    if (standard === undefined || files.length === 0) {
      throw invalid(path, `${one.instance_id} has no gold`, `Its gold is ${goldFolder}/exec_result/<instance_id>.csv.`)
    }
    const candidates = [join('resource', 'databases', 'spider2-localdb', `${one.db}.sqlite`)]
    return {
      name: plain(one.instance_id),
      split: 'dev',
      database: { name: plain(one.db), file: await databaseFile(path, candidates, one.db) },
      question: one.question,
      evidence: await knowledge(root, one.external_knowledge ?? null, path),
      golds: await Promise.all(
        files.map(async (file, i) => goldQuery(join(root, goldFolder, 'exec_result', file), counted(standard, i))),
      ),
      compare: { preset: 'spider2', rows: standard.ignore_order ? 'bag' : 'ordered' },
      difficulty: null,
    }
  })
  return taskFiles(await Promise.all(questions))
}

/** Rows of a JSON-lines text. Throws `TASK_INVALID` with the line. */
export function readLines(text: string, path: string): readonly unknown[] {
  return text.split('\n').flatMap((line, i) => {
    if (line.trim() === '') return []
    try {
      const row: unknown = JSON.parse(line)
      return [row]
    } catch (cause) {
      throw new PaddockError('TASK_INVALID', `${path}:${i + 1}: is not JSON`, { cause, data: { file: path } })
    }
  })
}

function parseRows<Row>(raw: readonly unknown[], schema: z.ZodType<Row>, path: string): readonly Row[] {
  const parsed = z.array(schema).safeParse(raw)
  if (parsed.success) return parsed.data
  const place = parsed.error.issues[0]?.path.join('.') ?? ''
  throw invalid(path, `row ${place} is not of Spider2-Lite`, 'Rows have instance_id, db and question.')
}

function goldName(id: string): RegExp {
  return new RegExp(`^${id}(?:_[a-z])?\\.csv$`)
}

/** Columns that count in the gold of this place; null: all. */
function counted({ condition_cols: given }: z.infer<typeof standardRow>, place: number): readonly number[] | null {
  const own = columns.safeParse(given)
  const list = own.success ? own.data : z.array(columns).parse(given)[place]
  return list === undefined || list.length === 0 ? null : list
}

async function goldQuery(file: string, kept: readonly number[] | null): Promise<string> {
  try {
    return valuesQuery(parseCsv(await readFile(file, 'utf8')), kept)
  } catch (cause) {
    throw invalid(file, `cannot be read as CSV: ${String(cause)}`, 'Take the file as it was published.', cause)
  }
}

async function knowledge(root: string, name: string | null, path: string): Promise<string> {
  return name === null ? '' : (await read(join(root, 'resource', 'documents', name), path)).trim()
}

async function read(file: string, path: string): Promise<string> {
  return readFile(file, 'utf8').catch((cause: unknown) => {
    throw invalid(path, `${file} cannot be read`, 'Keep the file in the folder of Spider2-Lite as published.', cause)
  })
}

function invalid(path: string, what: string, fix: string, cause?: unknown): PaddockError {
  return new PaddockError('TASK_INVALID', `${path}: ${what}`, { data: { file: path }, fix, cause })
}
