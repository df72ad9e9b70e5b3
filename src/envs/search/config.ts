import { z } from 'zod'
import { defaultBm25 } from './index/index.ts'
import { presetSchema } from './data.ts'

const share = z.number().min(0).max(1)

/** `search.toml` of a set: where its passages come from, how its tool searches, how its answers are scored. */
export const searchTomlSchema = z.strictObject({
  corpus: z.discriminatedUnion('kind', [
    z.strictObject({
      kind: z.literal('generated'),
      version: z.int().min(1),
      seed: z.int(),
      passages: z.int().min(200).max(100_000),
      sha256: z.string().optional(),
    }),
    z.strictObject({ kind: z.literal('jsonl'), path: z.string().min(1), sha256: z.string().optional() }),
    /** The passages that stand with the questions of HotpotQA, 2WikiMultihopQA (`hotpotqa`) or MuSiQue. */
    z.strictObject({
      kind: z.literal('contexts'),
      format: z.enum(['hotpotqa', 'musique']),
      path: z.string().min(1),
      sha256: z.string().optional(),
    }),
  ]),
  /** Questions of a data set, in place of `questions*.jsonl`. */
  questions: z
    .strictObject({
      format: z.enum(['jsonl', 'flashrag', 'hotpotqa', 'musique', 'search-r1', 'beir', 'trec']),
      path: z.string().min(1),
      /** Judgements, for `beir` and `trec`. */
      qrels: z.string().min(1).optional(),
    })
    .optional(),
  search: z
    .strictObject({
      topk: z.int().min(1).max(100).default(5),
      max_topk: z.int().min(1).max(100).default(20),
      max_searches: z.int().min(1).optional(),
      snippet_length: z.int().min(50).max(20_000).default(1200),
      k1: z.number().min(0).max(100).default(defaultBm25.k1),
      b: share.default(defaultBm25.b),
      /** Share of the shown passages that are taken from far down the ranking. */
      noise: share.optional(),
      /** The same growing over the steps of a training, in place of `noise`. */
      noise_curriculum: z
        .strictObject({
          from: share.default(0),
          to: share,
          steps: z.int().min(1),
          /** 1: even growth; above: slow at first, as ZeroSearch's 4. */
          base: z.number().min(1).max(1000).default(4),
          seed: z.int().default(0),
        })
        .optional(),
      /** Search by meaning beside words, through any server of `/v1/embeddings`. */
      dense: z
        .strictObject({
          url: z.string().min(1),
          model: z.string().min(1),
          /** Environment variable that holds the server's key. */
          key_env: z.string().min(1).optional(),
          query_prefix: z.string().default(''),
          passage_prefix: z.string().default(''),
          /** Passages of each ranking that are fused, and the constant of reciprocal-rank fusion. */
          depth: z.int().min(1).max(1000).default(100),
          rrf_k: z.number().min(0).default(60),
        })
        .optional(),
    })
    .prefault({}),
  scoring: z
    .strictObject({
      preset: presetSchema.default('grounded'),
      allowed_searches: z.int().min(1).default(8),
      penalties: z.strictObject({ duplicate_queries: share.default(0), over_search: share.default(0) }).prefault({}),
    })
    .prefault({}),
})

/** Parsed {@link searchTomlSchema}. */
export type SearchToml = z.infer<typeof searchTomlSchema>

/** As published sets write them: texts, or numbers. */
export const anId = z.union([z.string().min(1), z.int()]).transform(String)

/**
 * One line of `questions*.jsonl`: FlashRAG's `{id, question, golden_answers}`, and beside it what this environment can
 * use. Unknown fields pass: data sets carry many. No answer is for sets that score evidence alone.
 */
export const questionSchema = z.looseObject({
  id: anId.pipe(z.string().regex(/^[A-Za-z0-9][\w.-]*$/, 'must be letters, digits, dots, dashes and underscores')),
  question: z.string().min(1),
  golden_answers: z.array(z.string().min(1)),
  kind: z.string().default('question'),
  split: z.string().default('train'),
  /** Ids of the passages that answer it. */
  evidence: z.array(anId).default([]),
  queries: z.array(z.string().min(1)).optional(),
  weak_answer: z.string().optional(),
})

/** Parsed {@link questionSchema}. */
export type QuestionLine = z.infer<typeof questionSchema>
