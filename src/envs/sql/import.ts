import { access } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import { PaddockError } from '../../core/index.ts'
import type { SqlTaskFile } from './file.ts'

/**
 * Question files of the field, each a JSON array beside a folder of databases `<folder>/<db_id>/<db_id>.sqlite`:
 * - Spider (`train_spider.json`, `dev.json`): `{db_id, question, query}`; preset `spider-testsuite`.
 * - BIRD and its mini-dev (`dev.json`, `train.json`, `mini_dev_sqlite.json`): `{db_id, question, evidence, SQL,
 *   question_id, difficulty}`; preset `bird-ex`.
 * Other keys are left alone. No neighbours: the numbers are meant to be compared with published ones.
 */
const spiderSchema = z.looseObject({ db_id: z.string(), question: z.string(), query: z.string() })
const birdSchema = z.looseObject({
  db_id: z.string(),
  question: z.string(),
  SQL: z.string(),
  evidence: z.string().optional(),
  question_id: z.union([z.int(), z.string()]).optional(),
  difficulty: z.string().optional(),
})
const rowsSchema = z.array(z.union([birdSchema, spiderSchema])).min(1)

type Row = z.infer<typeof rowsSchema>[number]
type Entry = SqlTaskFile['tasks'][number]

const folders = ['database', 'databases', 'dev_databases', 'train_databases', 'test_database']

/** What an imported task is checked against: no row at all, and a change of the schema by hand. */
const cheats = [
  { name: 'no-rows', sql: 'SELECT NULL WHERE 0' },
  { name: 'empties-the-schema', sql: 'DELETE FROM sqlite_master' },
]

/**
 * One task file per database of an array of questions. Tasks are named after the file and their place in it, so that
 * a name finds its row. Throws `TASK_INVALID` for a row that has neither shape and for a database that is not there.
 */
export async function importRows(raw: readonly unknown[], path: string): Promise<readonly SqlTaskFile[]> {
  const parsed = rowsSchema.safeParse(raw)
  if (!parsed.success) {
    const place = parsed.error.issues[0]?.path.join('.') ?? ''
    throw new PaddockError('TASK_INVALID', `${path}: row ${place} is neither of Spider nor of BIRD`, {
      data: { file: path, place },
      fix: 'Spider rows have db_id, question and query; BIRD rows have db_id, question and SQL.',
    })
  }
  const stem = plain(basename(path, '.json'))
  const files: SqlTaskFile[] = []
  const places = parsed.data.map((row, i) => ({ row, name: `${stem}-${i}` }))
  for (const [name, rows] of Map.groupBy(places, ({ row }) => row.db_id)) {
    // A question that stands there twice is one task; where its golds differ, each is right.
    const entries = [...Map.groupBy(rows, ({ row }) => questionOf(row)).values()].flatMap(([first, ...more]) =>
      first === undefined
        ? []
        : [
            entryOf(
              first.row,
              first.name,
              [first, ...more].map(({ row }) => goldOf(row)),
            ),
          ],
    )
    files.push({
      database: { name: plain(name), file: await databaseFile(path, name) },
      neighbours: { subsets: 0, rebuilds: 0 },
      limits: { executeMs: 5000, verifyMs: 30_000 },
      tasks: entries,
    })
  }
  return files
}

function goldOf(row: Row): string {
  return 'SQL' in row ? birdSchema.parse(row).SQL : spiderSchema.parse(row).query
}

function questionOf(row: Row): string {
  return JSON.stringify([row.question, row['evidence'] ?? ''])
}

function entryOf(row: Row, name: string, golds: readonly string[]): Entry {
  const bird = 'SQL' in row ? birdSchema.parse(row) : null
  const evidence = bird?.evidence?.trim() ?? ''
  return {
    name,
    question: row.question,
    ...(evidence === '' ? {} : { evidence }),
    mode: 'query',
    gold: [...new Set(golds)],
    compare: { preset: bird === null ? 'spider-testsuite' : 'bird-ex' },
    probes: [],
    ignoreColumns: [],
    efficiencyWeight: 0,
    ...(bird?.difficulty === undefined ? {} : { difficulty: bird.difficulty }),
    split: /train/.test(name) ? 'train' : 'dev',
    cheats,
    weak: [],
  }
}

/** Relative to the question file. */
async function databaseFile(path: string, name: string): Promise<string> {
  for (const folder of folders) {
    const file = join(folder, name, `${name}.sqlite`)
    const there = await access(join(dirname(path), file)).then(
      () => true,
      () => false,
    )
    if (there) return file
  }
  throw new PaddockError('TASK_INVALID', `${path}: the database ${name} is not there`, {
    data: { file: path, database: name },
    fix: `Put it at ${folders[0]}/${name}/${name}.sqlite beside the file.`,
  })
}

function plain(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
}
