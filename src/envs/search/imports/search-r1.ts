import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'
import type { QuestionLine } from '../config.ts'

/**
 * A row of Search-R1's and verl's Parquet files (PeterGriffinJin/Search-R1 scripts/data_process/nq_search.py): the gold is
 * `reward_model.ground_truth.target`, the question a column of its own or what stands behind `Question:` in the prompt.
 */
const row = z.looseObject({
  id: z.string().nullish(),
  question: z.string().nullish(),
  data_source: z.string().nullish(),
  prompt: z.array(z.looseObject({ content: z.string() })).nullish(),
  reward_model: z.looseObject({
    ground_truth: z.looseObject({ target: z.union([z.array(z.string()).min(1), z.string()]) }),
  }),
  extra_info: z.looseObject({ split: z.string().nullish() }).nullish(),
})

/** Reads the questions. They have no evidence. Throws `TASK_INVALID` with the row. */
export async function readSearchR1(path: string): Promise<readonly QuestionLine[]> {
  const { asyncBufferFromFile, parquetReadObjects } = await import('hyparquet')
  const rows = await parquetReadObjects({ file: await asyncBufferFromFile(path) }).catch((cause: unknown) => {
    throw invalid(path, `cannot be read as Parquet: ${String(cause)}`, cause)
  })
  return rows.map((raw, i) => {
    const parsed = row.safeParse(raw)
    if (!parsed.success) throw invalid(`${path}: row ${i}`, z.prettifyError(parsed.error))
    const { id, question, data_source: source, prompt, reward_model: reward, extra_info: extra } = parsed.data
    const asked = question ?? prompt?.at(-1)?.content.split('Question:').at(-1)?.trim() ?? ''
    if (asked === '') throw invalid(`${path}: row ${i}`, 'has no question')
    return {
      id: id ?? `row-${i}`,
      question: asked,
      golden_answers: [reward.ground_truth.target].flat(),
      kind: source ?? 'question',
      split: extra?.split ?? 'train',
      evidence: [],
    }
  })
}

function invalid(place: string, what: string, cause?: unknown): PaddockError {
  return new PaddockError('TASK_INVALID', `${place}: ${what}`, {
    cause,
    data: { place },
    fix: 'Rows have question (or prompt) and reward_model.ground_truth.target, as Search-R1 writes them.',
  })
}
