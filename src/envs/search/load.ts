import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { z } from 'zod'
import { isPaddockError, makeTask, PaddockError, type Task } from '../../core/index.ts'
import type { LoadOptions } from '../contract.ts'
import { type Refuse, refuserOf } from '../refuse.ts'
import { parseToml } from '../terminal/index.ts'
import { anId, type QuestionLine, questionSchema, type SearchToml, searchTomlSchema } from './config.ts'
import type { Corpus, CorpusSource } from './corpus/index.ts'
import type { SearchData } from './data.ts'
import { importQuestions, type PlacedQuestion } from './imports/index.ts'
import type { EmbeddingsServer } from './retrieval/index.ts'
import type { CorpusCache } from './corpus-cache.ts'

/** One set: its folder, its `search.toml`, and which of its questions were asked for. */
interface QuestionSet {
  readonly folder: string
  readonly shown: string
  readonly toml: SearchToml
  readonly files: readonly string[]
  /** Null: all. */
  readonly only: string | null
}

/**
 * Reads the questions of a set: a folder with `search.toml` and `questions*.jsonl`, one of these files, or one question
 * as `<folder>/<id>`. Opens the corpus, so that a set whose evidence does not exist is refused here. Throws
 * `TASK_INVALID` with file and line of the first question that cannot be used, where nobody is told of each, `TASK_UNSUPPORTED`, and what opening the corpus throws.
 */
export async function loadQuestions(
  path: string,
  o: LoadOptions & { readonly cache: CorpusCache },
): Promise<readonly Task[]> {
  const refuse = refuserOf(o)
  const set = await findSet(path)
  const source = sourceOf(set.toml.corpus, set.folder)
  const corpus = await o.cache.open(source)
  o.signal?.throwIfAborted()
  const { sha256 } = set.toml.corpus
  if (sha256 !== undefined && sha256 !== corpus.digest) {
    throw invalid(join(set.shown, 'search.toml'), `corpus.sha256: the corpus is ${corpus.digest}`, {
      fix: 'The questions belong to another corpus: bring that one, or write new questions and this digest.',
    })
  }
  const tasks: Task[] = []
  const names = new Set<string>()
  let refused = 0
  const leaveOut = (name: string, error: unknown): void => {
    refuse(name, error)
    refused += 1
  }
  for await (const { question, place } of questionsOf(set, leaveOut)) {
    o.signal?.throwIfAborted()
    if (set.only !== null && question.id !== set.only) continue
    try {
      if (names.has(question.id)) throw invalid(place, `there are two questions ${question.id}`)
      names.add(question.id)
      await requireEvidence(question, corpus, set.toml, place)
      tasks.push(taskOf(question, set, corpus.digest))
    } catch (error) {
      if (!isInvalid(error)) throw error
      leaveOut(question.id, error)
    }
  }
  if (tasks.length + refused > 0) return tasks
  throw invalid(path, set.only === null ? 'holds no question' : `there is no question ${set.only}`)
}

async function* questionsOf(
  { folder, shown, toml, files, only }: QuestionSet,
  refuse: Refuse,
): AsyncGenerator<PlacedQuestion> {
  // Beside the one that was asked for, others do not matter.
  const refuseMeant: Refuse = (name, error) => {
    if (only === null || name === only) refuse(name, error)
  }
  if (toml.questions !== undefined) return yield* await importQuestions(folder, toml.questions, refuseMeant)
  for (const file of files) {
    for (const [index, line] of (await readFile(join(folder, file), 'utf8')).split('\n').entries()) {
      const place = `${join(shown, file)}:${index + 1}`
      if (line.trim() === '') continue
      try {
        yield { place, question: parseQuestion(line, place) }
      } catch (error) {
        if (!isInvalid(error)) throw error
        refuseMeant(idIn(line) ?? basename(place), error)
      }
    }
  }
}

/** Where the embeddings of a task are, as its `search.toml` says now; null: the set has none. Throws `TASK_INVALID`. */
export async function embeddingsOf(
  folder: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<EmbeddingsServer | null> {
  const { dense } = (await readToml(folder, folder)).search
  if (dense === undefined) return null
  const { url, model, key_env: name } = dense
  return { url, model, apiKey: name === undefined ? null : (environment[name] ?? null) }
}

/** The corpus that a path means: a folder with `search.toml`, or a JSON-lines file of passages. Throws `TASK_INVALID`. */
export async function corpusAt(path: string): Promise<CorpusSource> {
  const folder = resolve(path)
  const facts = await stat(folder).catch(() => null)
  if (facts?.isFile() === true) return { kind: 'jsonl', path: folder }
  return sourceOf((await readToml(folder, path)).corpus, folder)
}

/** The source of a task's corpus, its path made absolute. */
export function sourceOf(source: SearchData['corpus']['source'], folder: string): CorpusSource {
  if (source.kind === 'jsonl') return { kind: 'jsonl', path: resolve(folder, source.path) }
  if (source.kind === 'contexts') return { ...source, path: resolve(folder, source.path) }
  const { version, seed, passages } = source
  return { kind: 'generated', version, seed, passages }
}

async function findSet(path: string): Promise<QuestionSet> {
  const full = resolve(path)
  const facts = await stat(full).catch(() => null)
  if (facts?.isDirectory() === true) return readSet(full, path, null, null)
  const folder = dirname(full)
  if (facts?.isFile() === true) return readSet(folder, dirname(path), [basename(full)], null)
  return readSet(folder, dirname(path), null, basename(full))
}

async function readSet(
  folder: string,
  shown: string,
  files: readonly string[] | null,
  only: string | null,
): Promise<QuestionSet> {
  const toml = await readToml(folder, shown)
  const found = files ?? (await readdir(folder)).filter((name) => /^questions.*\.jsonl$/.test(name)).toSorted()
  return { folder, shown, toml, files: found, only }
}

async function readToml(folder: string, shown: string): Promise<SearchToml> {
  const file = join(shown, 'search.toml')
  const text = await readFile(join(folder, 'search.toml'), 'utf8').catch((cause: unknown) => {
    throw invalid(file, 'does not exist', {
      cause,
      fix: 'A set of questions is a folder with search.toml and questions.jsonl; give it, or <folder>/<question id>.',
    })
  })
  const toml = parseToml(text, file, searchTomlSchema)
  if (toml.search.topk > toml.search.max_topk) throw invalid(file, 'search.topk is above search.max_topk')
  if (toml.search.noise !== undefined && toml.search.noise_curriculum !== undefined) {
    throw invalid(file, 'search.noise and search.noise_curriculum exclude each other', { fix: 'Leave one out.' })
  }
  return toml
}

const isInvalid = (error: unknown): boolean => isPaddockError(error) && error.code === 'TASK_INVALID'

/** What the row calls itself, whatever else is wrong with it. */
function idIn(line: string): string | null {
  try {
    return z.looseObject({ id: anId }).parse(JSON.parse(line)).id
  } catch {
    return null
  }
}

function parseQuestion(line: string, place: string): QuestionLine {
  let row: unknown
  try {
    row = JSON.parse(line)
  } catch (cause) {
    throw invalid(place, 'is not JSON', { cause })
  }
  const parsed = questionSchema.safeParse(row)
  if (!parsed.success) throw invalid(place, z.prettifyError(parsed.error))
  return parsed.data
}

async function requireEvidence(
  question: QuestionLine,
  corpus: Corpus,
  { scoring }: SearchToml,
  place: string,
): Promise<void> {
  if (question.evidence.length === 0 && scoring.preset !== 'answer') {
    throw invalid(place, `scoring.preset = "${scoring.preset}" needs evidence`, {
      fix: 'List the ids of the passages that answer it, or use scoring.preset = "answer".',
    })
  }
  if (question.golden_answers.length === 0 && scoring.preset !== 'evidence') {
    throw invalid(place, `scoring.preset = "${scoring.preset}" needs golden_answers`, {
      fix: 'Give answers, or use scoring.preset = "evidence".',
    })
  }
  for (const id of question.evidence) {
    if ((await corpus.get(id)) === null) {
      throw invalid(place, `the corpus has no passage ${id}`, { fix: 'Correct evidence.' })
    }
  }
}

/** `Task.data` of a question of a set. */
export function dataOf(question: QuestionLine, { corpus, search, scoring }: SearchToml, digest: string): SearchData {
  return {
    corpus: {
      digest,
      source:
        corpus.kind === 'jsonl'
          ? { kind: 'jsonl', path: corpus.path }
          : corpus.kind === 'contexts'
            ? { kind: 'contexts', format: corpus.format, path: corpus.path }
            : { kind: 'generated', version: corpus.version, seed: corpus.seed, passages: corpus.passages },
    },
    kind: question.kind,
    golds: question.golden_answers,
    evidence: question.evidence,
    search: {
      topk: search.topk,
      maxTopk: search.max_topk,
      maxSearches: search.max_searches ?? null,
      snippetLength: search.snippet_length,
      k1: search.k1,
      b: search.b,
      ...(search.noise === undefined ? {} : { noise: search.noise }),
      ...(search.noise_curriculum === undefined ? {} : { curriculum: search.noise_curriculum }),
      ...denseOf(search.dense),
    },
    scoring: { preset: scoring.preset, allowedSearches: scoring.allowed_searches, penalties: scoring.penalties },
    scripts: {
      queries: question.queries ?? [question.question],
      weakAnswer: question.weak_answer ?? null,
      ...(question.queries === undefined ? { opens: true as const } : {}),
    },
  }
}

function taskOf(question: QuestionLine, { folder, toml }: QuestionSet, digest: string): Task {
  return makeTask({
    name: question.id,
    environment: 'search',
    instruction: question.question,
    split: question.split,
    data: dataOf(question, toml, digest),
    source: folder,
  })
}

function denseOf(dense: SearchToml['search']['dense']): Pick<SearchData['search'], 'dense'> {
  if (dense === undefined) return {}
  const { model, query_prefix: queryPrefix, passage_prefix: passagePrefix, depth, rrf_k: rrfK } = dense
  return { dense: { model, queryPrefix, passagePrefix, depth, rrfK } }
}

function invalid(
  place: string,
  what: string,
  o: { readonly fix?: string; readonly cause?: unknown } = {},
): PaddockError {
  return new PaddockError('TASK_INVALID', `${place}: ${what}`, { data: { place }, ...o })
}
