import { basename } from 'node:path'
import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'
import type { Refuse } from '../../refuse.ts'
import type { SqlTaskFile } from '../task-file.ts'
import { classicFolders, databaseFile } from './databases.ts'
import { type ImportedQuestion, plain, taskFiles } from './task-files.ts'

/**
 * Question files of the field, each with its databases at `<folder>/<db_id>/<db_id>.sqlite` beside it:
 * - Spider (`train_spider.json`, `dev.json`): `{db_id, question, query}`; preset `spider-testsuite`.
 * - BIRD and its mini-dev (`dev.json`, `train.json`, `mini_dev_sqlite.json`): `{db_id, question, evidence, SQL,
 *   question_id, difficulty}`; preset `bird-ex`.
 * - NeMo Gym (`resources_servers/bird_sql/data/*.jsonl`): `{question, gt_sql, sql_context, db_id, difficulty, id}`;
 *   preset `bird-ex`, as its verifier compares.
 * Other keys are left alone. No neighbours: the numbers are meant to be compared with published ones.
 */
const spider = z.looseObject({ db_id: z.string(), question: z.string(), query: z.string() })
const bird = z.looseObject({
  db_id: z.string(),
  question: z.string(),
  SQL: z.string(),
  evidence: z.string().optional(),
  difficulty: z.string().optional(),
})
const nemo = z.looseObject({
  db_id: z.string(),
  question: z.string(),
  gt_sql: z.string(),
  difficulty: z.string().nullish(),
})

const row = z.union([
  bird.transform(({ SQL: gold, evidence = '', difficulty, db_id, question }) => {
    return { db_id, question, gold, evidence: evidence.trim(), difficulty, preset: 'bird-ex' as const }
  }),
  nemo.transform(({ gt_sql: gold, difficulty, db_id, question }) => {
    return { db_id, question, gold, evidence: '', difficulty, preset: 'bird-ex' as const }
  }),
  spider.transform(({ query: gold, db_id, question }) => {
    return { db_id, question, gold, evidence: '', difficulty: undefined, preset: 'spider-testsuite' as const }
  }),
])

/**
 * One task file per database. Tasks are named after the file and their place in it, so that a name finds its row.
 * Of a row that has none of the shapes, or whose database is not there, `refuse` is told.
 */
export async function importQuestions(
  raw: readonly unknown[],
  path: string,
  refuse: Refuse,
): Promise<readonly SqlTaskFile[]> {
  if (raw.length === 0) throw unknownShape(path, '')
  const stem = plain(basename(path).replace(/\.jsonl?$/, ''))
  const questionAt = async (one: unknown, i: number): Promise<ImportedQuestion> => {
    const parsed = row.safeParse(one)
    if (!parsed.success) throw unknownShape(path, String(i))
    const { db_id, question, gold, evidence, difficulty, preset } = parsed.data
    return {
      name: `${stem}-${i}`,
      split: /train/.test(stem) ? 'train' : 'dev',
      database: { name: plain(db_id), file: await databaseFile(path, classicFolders(db_id), db_id) },
      question,
      evidence,
      golds: [gold],
      compare: { preset },
      difficulty: difficulty ?? null,
    }
  }
  const questions = await Promise.allSettled(raw.map(questionAt))
  return taskFiles(
    questions.flatMap((one, i) => {
      if (one.status === 'fulfilled') return [one.value]
      refuse(`${stem}-${i}`, one.reason)
      return []
    }),
  )
}

function unknownShape(path: string, place: string): PaddockError {
  return new PaddockError('TASK_INVALID', `${path}: row ${place} is none of Spider, BIRD or NeMo Gym`, {
    data: { file: path, place },
    fix: 'Rows have db_id and question, and query (Spider), SQL (BIRD) or gt_sql (NeMo Gym).',
  })
}
