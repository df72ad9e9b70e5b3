import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { isPaddockError, PaddockError } from '../../../core/index.ts'
import type { Refuse } from '../../refuse.ts'
import type { ContextFormat, Document } from './document.ts'

/** HotpotQA's JSON (hotpotqa/hotpot README at 02493f6), also of 2WikiMultihopQA: one array. */
const hotpotqaPassages = z.looseObject({ context: z.array(z.tuple([z.string(), z.array(z.string())])) })
const hotpotqa = hotpotqaPassages.extend({
  _id: z.string(),
  question: z.string(),
  answer: z.string(),
  type: z.string().default('question'),
  supporting_facts: z.array(z.tuple([z.string(), z.int()])),
})

/** MuSiQue's JSON lines, v1.0 (`musique_ans_v1.0_dev.jsonl`). */
const musiquePassages = z.looseObject({
  answerable: z.boolean().default(true),
  paragraphs: z.array(
    z.looseObject({ title: z.string(), paragraph_text: z.string(), is_supporting: z.boolean().default(false) }),
  ),
})
const musique = musiquePassages.extend({
  id: z.string(),
  question: z.string(),
  answer: z.string(),
  answer_aliases: z.array(z.string()).default([]),
})

/** A question with the passages that stand with it. */
export interface ContextQuestion {
  readonly id: string
  readonly question: string
  readonly answers: readonly string[]
  readonly kind: string
  readonly passages: readonly Document[]
  /** Ids of those that answer it. */
  readonly evidence: readonly string[]
}

/**
 * The passages of all questions of a file, each once; those of a question that cannot be used too, where they can be read.
 * Throws `TASK_INVALID` for a file in which there are none.
 */
export async function* readContexts(path: string, format: ContextFormat): AsyncGenerator<Document> {
  const seen = new Set<string>()
  const wrong: unknown[] = []
  const refuse: Refuse = (_name, error) => void wrong.push(error)
  for (const { row, place } of await rowsOf(path, format, refuse)) {
    for (const passage of passagesIn(row, { format, place, refuse })) {
      if (seen.has(passage.id)) continue
      seen.add(passage.id)
      yield passage
    }
  }
  if (seen.size === 0 && wrong.length > 0) throw wrong[0]
}

/**
 * The questions of a file; those that MuSiQue says have no answer are left out. `refuse` is told of each row that is none.
 * Throws `TASK_INVALID`, and what `refuse` throws.
 */
export async function readContextQuestions(
  path: string,
  format: ContextFormat,
  refuse: Refuse,
): Promise<readonly ContextQuestion[]> {
  return (await rowsOf(path, format, refuse)).flatMap(({ row, name, place }) => {
    try {
      return format === 'hotpotqa' ? [fromHotpot(parse(hotpotqa, row, place))] : fromMusique(parse(musique, row, place))
    } catch (error) {
      if (!isPaddockError(error)) throw error
      refuse(name, error)
      return []
    }
  })
}

interface PlacedRow {
  readonly row: unknown
  readonly place: string
  /** What it calls itself, else its place in the file. */
  readonly name: string
}

async function rowsOf(path: string, format: ContextFormat, refuse: Refuse): Promise<readonly PlacedRow[]> {
  const read = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw invalid(path, 'cannot be read', cause)
  })
  const text = read.replace(/^\ufeff/, '')
  const rows = format === 'hotpotqa' ? parseArray(text, path) : parseLines(text, path, refuse)
  return rows.map((row, i) => {
    const { _id, id } = z.looseObject({ _id: z.string(), id: z.string() }).partial().safeParse(row).data ?? {}
    return { row, place: `${path}: row ${i}`, name: _id ?? id ?? `row-${i}` }
  })
}

function passagesIn(
  row: unknown,
  { format, place, refuse }: { readonly format: ContextFormat; readonly place: string; readonly refuse: Refuse },
): readonly Document[] {
  try {
    if (format === 'hotpotqa') return ofContext(parse(hotpotqaPassages, row, place))
    const read = parse(musiquePassages, row, place)
    return read.answerable ? ofParagraphs(read) : []
  } catch (error) {
    if (!isPaddockError(error)) throw error
    refuse(place, error)
    return []
  }
}

function ofContext({ context }: z.infer<typeof hotpotqaPassages>): readonly Document[] {
  return context.map(([title, sentences]) => passageOf(title, sentences.join('').trim()))
}

function ofParagraphs({ paragraphs }: z.infer<typeof musiquePassages>): readonly Document[] {
  return paragraphs.map((one) => passageOf(one.title, one.paragraph_text))
}

function fromHotpot(row: z.infer<typeof hotpotqa>): ContextQuestion {
  const { _id: id, question, answer, type, supporting_facts: facts } = row
  const passages = ofContext(row)
  const titles = new Set(facts.map(([title]) => title))
  const evidence = passages.filter(({ title }) => titles.has(title)).map((passage) => passage.id)
  return { id, question, answers: [answer], kind: type, passages, evidence }
}

function fromMusique(row: z.infer<typeof musique>): readonly ContextQuestion[] {
  const { id, question, answer, answer_aliases: aliases, answerable, paragraphs } = row
  if (!answerable) return []
  const passages = ofParagraphs(row)
  const evidence = passages.filter((_, i) => paragraphs[i]?.is_supporting === true).map((passage) => passage.id)
  // The part before the underscores says how the hops hang together: 2hop, 3hop1, 4hop2, …
  return [{ id, question, answers: [answer, ...aliases], kind: id.split('__')[0] ?? 'question', passages, evidence }]
}

// One title can stand over several passages, so that a passage is known by all that it says.
function passageOf(title: string, text: string): Document {
  const id = `p${createHash('sha256').update(`${title}\0${text}`).digest('hex').slice(0, 16)}`
  return { id, title, text }
}

function parse<Row>(schema: z.ZodType<Row>, row: unknown, place: string): Row {
  const parsed = schema.safeParse(row)
  if (parsed.success) return parsed.data
  throw invalid(place, z.prettifyError(parsed.error), parsed.error)
}

function parseArray(text: string, path: string): readonly unknown[] {
  try {
    return z.array(z.unknown()).parse(JSON.parse(text))
  } catch (cause) {
    throw invalid(path, 'is not a JSON array', cause)
  }
}

function parseLines(text: string, path: string, refuse: Refuse): readonly unknown[] {
  return text.split('\n').flatMap((line, i) => {
    if (line.trim() === '') return []
    try {
      const row: unknown = JSON.parse(line)
      return [row]
    } catch (cause) {
      refuse(`line-${i + 1}`, invalid(`${path}:${i + 1}`, 'is not JSON', cause))
      return []
    }
  })
}

function invalid(place: string, what: string, cause?: unknown): PaddockError {
  return new PaddockError('TASK_INVALID', `${place}: ${what}`, {
    cause,
    data: { place },
    fix: 'Take the file as it was published: HotpotQA and 2Wiki are one JSON array, MuSiQue is JSON lines.',
  })
}
