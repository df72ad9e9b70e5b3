import { z } from 'zod'
import type { SqlSemantics } from '../../reward/index.ts'

const rows = z.enum(['set', 'bag', 'ordered', 'by_gold', 'by_gold_text'])
const columns = z.enum(['position', 'permutation', 'subset', 'exists'])
const tolerance = z.strictObject({ absolute: z.number().min(0), relative: z.number().min(0).max(1) })

/** Schema of {@link SqlSemantics}. */
export const semanticsSchema: z.ZodType<SqlSemantics> = z.strictObject({
  rows,
  columns,
  tolerance,
  nulls: z.enum(['distinct', 'as_zero']),
  numberTexts: z.enum(['distinct', 'as_numbers']),
  emptyTables: z.enum(['equal', 'by_width']),
  distinct: z.literal('removed').optional(),
  repairs: z.literal('spider').optional(),
})

/** Absent: SQLite. */
const engine = z.enum(['duckdb', 'postgres']).optional()

/** Where the tables come from: a script that makes them in the image, or a finished file beside the task file. */
const database = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('script'), name: z.string(), engine, script: z.string() }),
  z.object({ kind: z.literal('file'), name: z.string(), engine, file: z.string(), sha256: z.string() }),
])

/** What looking around earns. */
export const explorationSchema = z.object({
  weight: z.number().min(0).max(1),
  /** Distinct statements that ran, beyond which more earn no more. */
  statements: z.int().min(1),
})

/** `Task.data` of an sql task, with every default filled in. Times in milliseconds. */
export const sqlDataSchema = z.object({
  database,
  /** `query`: the submission's rows count, and it must not change anything. `write`: what it leaves behind counts. */
  mode: z.enum(['query', 'write']),
  /** Each alone is right. */
  golds: z.array(z.string().min(1)).min(1),
  semantics: semanticsSchema,
  conditionColumns: z.array(z.int().min(0)).nullable(),
  /** Statements tried on the changed database, to compare constraints and triggers. */
  probes: z.array(z.string()),
  /** `table.column`, lower case: what a write may leave as it likes. */
  ignoreColumns: z.array(z.string()),
  /** Further databases of the same shape, on which the submission must agree with the gold too. */
  neighbours: z.object({ subsets: z.int().min(0).max(8), rebuilds: z.int().min(0).max(8) }),
  /** Share of the reward that a right query earns by not being slower than the gold; 0: none. */
  efficiencyWeight: z.number().min(0).max(1),
  /** Measured by the clock (R-VES); absent: by SQLite's instructions. */
  efficiencyBy: z.literal('time').optional(),
  /** What looking around before the submission earns a right query; absent: nothing. */
  exploration: explorationSchema.optional(),
  /** Share of the reward that a right query earns by keeping the format, under a harness of tags; absent: nothing. */
  formatWeight: z.number().min(0).max(1).optional(),
  /** Values on calls: by what their statements came to. Absent: none. */
  stepValues: z.literal('status').optional(),
  limits: z.object({
    /** A statement of the agent. */
    executeMs: z.number().positive(),
    /** A statement of the verifier. */
    verifyMs: z.number().positive(),
  }),
  difficulty: z.string().nullable(),
})

/** Parsed {@link sqlDataSchema}. */
export type SqlData = z.infer<typeof sqlDataSchema>
