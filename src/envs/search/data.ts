import { z } from 'zod'

const source = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('generated'), version: z.int(), seed: z.int(), passages: z.int() }),
  /** `path` relative to the folder of the set (`Task.source`), so that the digest is the same on every machine. */
  z.object({ kind: z.literal('jsonl'), path: z.string() }),
  z.object({ kind: z.literal('contexts'), format: z.enum(['hotpotqa', 'musique']), path: z.string() }),
])

/** How components become the reward. */
export const presetSchema = z.enum(['grounded', 'grounded-f1', 'answer', 'evidence'])

/**
 * `Task.data` of a search task. The passages stay in the corpus and stand here by digest, so that another corpus is
 * another task. Golds and evidence are for the verifier; no tool shows them.
 */
export const searchDataSchema = z.object({
  corpus: z.object({ source, digest: z.string() }),
  kind: z.string(),
  /** Empty only where evidence alone is scored. */
  golds: z.array(z.string()),
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
    /** Absent: none. */
    noise: z.number().optional(),
    curriculum: z
      .object({ from: z.number(), to: z.number(), steps: z.int(), base: z.number(), seed: z.int() })
      .optional(),
    /** Absent: words only. Where the server is stands in search.toml: another place of one model is no other task. */
    dense: z
      .object({
        model: z.string(),
        queryPrefix: z.string(),
        passagePrefix: z.string(),
        depth: z.int(),
        rrfK: z.number(),
      })
      .optional(),
  }),
  scoring: z.object({
    preset: presetSchema,
    /** Queries beyond these are over-search. */
    allowedSearches: z.int(),
    /** Share of the reward that a full penalty takes. */
    penalties: z.object({ duplicate_queries: z.number(), over_search: z.number() }),
  }),
  /** What the oracle searches for, and what somebody says who stops half-way. */
  scripts: z.object({
    queries: z.array(z.string()),
    weakAnswer: z.string().nullable(),
    /** True: nobody wrote queries that find the evidence, so the oracle opens all of it by id. */
    opens: z.literal(true).optional(),
  }),
})

/** How noise grows over the steps of a training. */
export type NoiseCurriculum = NonNullable<SearchData['search']['curriculum']>

/** Parsed {@link searchDataSchema}. */
export type SearchData = z.infer<typeof searchDataSchema>
