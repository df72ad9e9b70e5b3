import { z } from 'zod'

const source = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('generated'), version: z.int(), seed: z.int(), passages: z.int() }),
  /** `path` relative to the folder of the set (`Task.source`), so that the digest is the same on every machine. */
  z.object({ kind: z.literal('jsonl'), path: z.string() }),
])

/** How components become the reward. */
export const presetSchema = z.enum(['grounded', 'grounded-f1', 'answer'])

/**
 * `Task.data` of a search task. The passages stay in the corpus and stand here by digest, so that another corpus is
 * another task. Golds and evidence are for the verifier; no tool shows them.
 */
export const searchDataSchema = z.object({
  corpus: z.object({ source, digest: z.string() }),
  kind: z.string(),
  golds: z.array(z.string()).min(1),
  /** Ids of the passages that answer the question. */
  evidence: z.array(z.string()),
  search: z.object({
    topk: z.int(),
    maxTopk: z.int(),
    /** Queries that the tool answers in one attempt; null: any number. */
    maxSearches: z.int().nullable(),
    /** UTF-16 units of a passage that a search shows. */
    snippetLength: z.int(),
    k1: z.number(),
    b: z.number(),
  }),
  scoring: z.object({
    preset: presetSchema,
    /** Queries beyond these are over-search. */
    allowedSearches: z.int(),
    /** Share of the reward that a full penalty takes. */
    penalties: z.object({ duplicate_queries: z.number(), over_search: z.number() }),
  }),
  /** What the oracle searches for, and what somebody says who stops half-way. */
  plays: z.object({ queries: z.array(z.string()), weakAnswer: z.string().nullable() }),
})

/** Parsed {@link searchDataSchema}. */
export type SearchData = z.infer<typeof searchDataSchema>
