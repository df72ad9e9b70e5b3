import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'
import type { Refuse } from '../../refuse.ts'
import { anId, type QuestionLine } from '../config.ts'

/**
 * A row of Search-R1's and verl's Parquet files (PeterGriffinJin/Search-R1 scripts/data_process/nq_search.py): the gold is
 * `reward_model.ground_truth.target`, the question a column of its own or what stands behind `Question:` in the prompt.
 */
const row = z.looseObject({
  id: anId.nullish(),
  question: z.string().nullish(),
  data_source: z.string().nullish(),
  prompt: z.array(z.looseObject({ content: z.string() })).nullish(),
  reward_model: z.looseObject({
    ground_truth: z.looseObject({ target: z.union([z.array(z.string()).min(1), z.string()]) }),
  }),
  extra_info: z.looseObject({ split: z.string().nullish() }).nullish(),
})

/** Reads the questions. They have no evidence. `refuse` is told of each row that is none. Throws `TASK_INVALID`, and what `refuse` throws. */
export async function readSearchR1(path: string, refuse: Refuse): Promise<readonly QuestionLine[]> {
  const { asyncBufferFromFile, parquetReadObjects } = await import('hyparquet')
  const rows = await parquetReadObjects({ file: await asyncBufferFromFile(path) }).catch((cause: unknown) => {
    throw invalid(path, `cannot be read as Parquet: ${String(cause)}`, cause)
  })
  return rows.flatMap((raw, i) => {
    const parsed = row.safeParse(raw)
    const asked = parsed.success ? questionOf(parsed.data) : ''
    if (!parsed.success || asked === '') {
      const what = parsed.success ? 'has no question' : z.prettifyError(parsed.error)
      refuse(`row-${i}`, invalid(`${path}: row ${i}`, what))
      return []
    }
    const { id, data_source: source, reward_model: reward, extra_info: extra } = parsed.data
    return [
      {
        id: id ?? `row-${i}`,
        question: asked,
        golden_answers: [reward.ground_truth.target].flat(),
        kind: source ?? 'question',
        split: extra?.split ?? 'train',
        evidence: [],
      },
    ]
  })
}

function questionOf({ question, prompt }: z.infer<typeof row>): string {
  return question ?? prompt?.at(-1)?.content.split('Question:').at(-1)?.trim() ?? ''
}

function invalid(place: string, what: string, cause?: unknown): PaddockError {
  return new PaddockError('TASK_INVALID', `${place}: ${what}`, {
    cause,
    data: { place },
    fix: 'Rows have question (or prompt) and reward_model.ground_truth.target, as Search-R1 writes them.',
  })
}
