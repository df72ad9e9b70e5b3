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
  ]),
  search: z
    .strictObject({
      topk: z.int().min(1).max(100).default(5),
      max_topk: z.int().min(1).max(100).default(20),
      max_searches: z.int().min(1).optional(),
      snippet_length: z.int().min(50).max(20_000).default(1200),
      k1: z.number().min(0).max(100).default(defaultBm25.k1),
      b: share.default(defaultBm25.b),
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

/**
 * One line of `questions*.jsonl`: FlashRAG's `{id, question, golden_answers}`, and beside it what this environment can
 * use. Unknown fields pass: data sets carry many.
 */
export const questionSchema = z.looseObject({
  id: z.string().regex(/^[A-Za-z0-9][\w.-]*$/, 'must be letters, digits, dots, dashes and underscores'),
  question: z.string().min(1),
  golden_answers: z.array(z.string().min(1)).min(1),
  kind: z.string().default('question'),
  split: z.string().default('train'),
  /** Ids of the passages that answer it. */
  evidence: z.array(z.string()).default([]),
  queries: z.array(z.string().min(1)).optional(),
  weak_answer: z.string().optional(),
})

/** Parsed {@link questionSchema}. */
export type QuestionLine = z.infer<typeof questionSchema>
