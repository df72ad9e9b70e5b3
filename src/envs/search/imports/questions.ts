import { readFile } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'
import type { Refuse } from '../../refuse.ts'
import { anId, type QuestionLine, questionSchema, type SearchToml } from '../config.ts'
import { readContextQuestions } from '../corpus/index.ts'
import { readQrels } from './qrels.ts'
import { readSearchR1 } from './search-r1.ts'
import { parseTopics, type Topic } from './topics.ts'

/** A question and where it stands, for errors. */
export interface PlacedQuestion {
  readonly place: string
  readonly question: QuestionLine
}

/** BEIR's `queries.jsonl`. */
const beirQuery = z.looseObject({ _id: anId, text: z.string().min(1) })

/**
 * The questions that `[questions]` of a `search.toml` names, in the format of their data set. Those of BEIR and TREC have
 * no answers and are kept where somebody judged passages for them. `refuse` is told of each row that cannot be used. Throws
 * `TASK_INVALID` for a file that cannot be read, and what `refuse` throws.
 */
export async function importQuestions(
  folder: string,
  { format, path, qrels }: NonNullable<SearchToml['questions']>,
  refuse: Refuse,
): Promise<readonly PlacedQuestion[]> {
  const file = resolve(folder, path)
  switch (format) {
    case 'jsonl':
    case 'flashrag':
      return placed(parseLines(await text(file), file, { schema: questionSchema, refuse }), path)
    case 'hotpotqa':
    case 'musique': {
      const split = splitOf(path)
      const found = await readContextQuestions(file, format, refuse)
      return placed(
        found.map(({ id, question, answers, kind, evidence }) => {
          return { id, question, golden_answers: [...answers], kind, split, evidence: [...evidence] }
        }),
        path,
      )
    }
    case 'search-r1':
      return placed(await readSearchR1(file, refuse), path)
    case 'beir': {
      const topics = parseLines(await text(file), file, { schema: beirQuery, refuse }).map((one) => ({
        id: one._id,
        text: one.text,
      }))
      return judged(topics, folder, qrels, path)
    }
    case 'trec':
      return judged(parseTopics(await text(file)), folder, qrels, path)
  }
}

async function judged(
  topics: readonly Topic[],
  folder: string,
  qrels: string | undefined,
  path: string,
): Promise<readonly PlacedQuestion[]> {
  if (qrels === undefined) throw invalid(path, 'questions.qrels is missing', 'Name the file of judgements.')
  if (topics.length === 0) throw invalid(path, 'holds no topic', 'Topics are <top> blocks, or id<TAB>text lines.')
  const known = await readQrels(resolve(folder, qrels))
  return placed(
    topics.flatMap(({ id, text: question }) => {
      const evidence = [...(known.get(id) ?? [])]
      return evidence.length === 0
        ? []
        : [{ id, question, golden_answers: [], kind: 'retrieval', split: splitOf(qrels), evidence }]
    }),
    path,
  )
}

function placed(questions: readonly QuestionLine[], path: string): readonly PlacedQuestion[] {
  return questions.map((question) => ({ place: `${path}: question ${question.id}`, question }))
}

function splitOf(path: string): string {
  return /train/.test(basename(path)) ? 'train' : /test/.test(basename(path)) ? 'test' : 'dev'
}

function parseLines<Row>(
  whole: string,
  file: string,
  { schema, refuse }: { readonly schema: z.ZodType<Row>; readonly refuse: Refuse },
): readonly Row[] {
  return whole.split('\n').flatMap((line, i) => {
    if (line.trim() === '') return []
    const place = `${file}:${i + 1}`
    const row = jsonOf(line)
    const parsed = schema.safeParse(row)
    if (parsed.success) return [parsed.data]
    const what = row === undefined ? 'is not JSON' : z.prettifyError(parsed.error)
    refuse(nameOf(row) ?? basename(place), invalid(place, what, 'Take the file as it was published.'))
    return []
  })
}

function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** What the row calls itself, whatever else is wrong with it. */
function nameOf(row: unknown): string | null {
  const named = z.union([
    z.looseObject({ id: anId }),
    z.looseObject({ _id: anId }).transform(({ _id }) => ({ id: _id })),
  ])
  return named.safeParse(row).data?.id ?? null
}

async function text(file: string): Promise<string> {
  const read = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw invalid(file, `cannot be read: ${String(cause)}`, 'Paths start at the folder of search.toml.')
  })
  return read.replace(/^\ufeff/, '')
}

function invalid(place: string, what: string, fix: string): PaddockError {
  return new PaddockError('TASK_INVALID', `${place}: ${what}`, { data: { place }, fix })
}
