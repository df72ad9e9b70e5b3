import { basename, join } from 'node:path'
import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'
import type { SqlTaskFile } from '../task-file.ts'
import { databaseFile } from './databases.ts'
import { type ImportedQuestion, plain, taskFiles } from './task-files.ts'

const truth = z.looseObject({ ground_truth: z.string() })
/** The two forms of SkyRL-SQL-653: `reward_spec` in the newer, `reward_model` in the older. */
const row = z
  .looseObject({
    db_id: z.string(),
    data: z.enum(['synsql', 'spider', 'bird']),
    prompt: z.array(z.looseObject({ role: z.string(), content: z.string() })),
    reward_spec: truth.nullish(),
    reward_model: truth.nullish(),
  })
  .transform((one, context) => {
    const gold = (one.reward_spec ?? one.reward_model)?.ground_truth
    if (gold !== undefined) return { ...one, gold }
    context.addIssue('has neither reward_spec nor reward_model')
    return z.NEVER
  })

/** Where the databases lie below SkyRL's `db_path` (skyrl-gym/skyrl_gym/envs/sql/env.py at 259f0b0). */
const folders = {
  synsql: join('SynSQL-2.5M', 'databases'),
  spider: join('spider', 'database'),
  bird: join('bird', 'train', 'train_databases'),
}
const roots = [join('db_files', 'data'), 'data', '.']

/**
 * SkyRL-SQL's Parquet files (`train.parquet`, `validation.parquet`): the question is what stands behind `{question}:` of
 * the user's message, external knowledge behind `{external_knowledge}:`; the schema is left to the tools. Sets of rows are
 * compared, as SkyRL does. Throws `TASK_INVALID` with the row.
 */
export async function importSkyRl(path: string): Promise<readonly SqlTaskFile[]> {
  const { asyncBufferFromFile, parquetReadObjects } = await import('hyparquet')
  const rows = await parquetReadObjects({ file: await asyncBufferFromFile(path) }).catch((cause: unknown) => {
    throw invalid(path, `cannot be read as Parquet: ${String(cause)}`, cause)
  })
  const stem = plain(basename(path, '.parquet'))
  const questions = rows.map(async (raw, i): Promise<ImportedQuestion> => {
    const parsed = row.safeParse(raw)
    if (!parsed.success) throw invalid(path, `row ${i}: ${z.prettifyError(parsed.error)}`)
    const { db_id: id, data, prompt, gold } = parsed.data
    const asked = partsOf(prompt.findLast(({ role }) => role === 'user')?.content ?? '')
    if (asked === null) throw invalid(path, `row ${i}: the user's message has no {question}:`)
    const candidates = roots.map((root) => join(root, folders[data], id, `${id}.sqlite`))
    return {
      name: `${stem}-${i}`,
      split: stem.startsWith('train') ? 'train' : 'dev',
      database: { name: plain(`${data}-${id}`), file: await databaseFile(path, candidates, id) },
      ...asked,
      golds: [gold],
      compare: { preset: 'bird-ex' },
      difficulty: null,
    }
  })
  if (questions.length === 0) throw invalid(path, 'holds no row')
  return taskFiles(await Promise.all(questions))
}

function partsOf(text: string): { readonly question: string; readonly evidence: string } | null {
  const at = text.lastIndexOf('{question}:')
  if (at === -1) return null
  const known = /\{external_knowledge\}:([\s\S]*?);?\s*$/.exec(text.slice(0, at))?.[1]?.trim() ?? ''
  return { question: text.slice(at + '{question}:'.length).trim(), evidence: known === 'None' ? '' : known }
}

function invalid(path: string, what: string, cause?: unknown): PaddockError {
  return new PaddockError('TASK_INVALID', `${path}: ${what}`, {
    cause,
    data: { file: path },
    fix: 'Rows are those of SkyRL-SQL: db_id, data, prompt and reward_spec (or reward_model) with ground_truth.',
  })
}
