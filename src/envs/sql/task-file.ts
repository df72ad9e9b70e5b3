import { z } from 'zod'
import { sqlPresetNames } from '../../reward/index.ts'
import { explorationSchema, sqlDataSchema } from './data.ts'

/** Parts of the semantics that a task sets beside its preset. */
const compare = z.strictObject({
  preset: z.enum(sqlPresetNames).default('strict'),
  rows: z.enum(['set', 'bag', 'ordered', 'by_gold', 'by_gold_text']).optional(),
  columns: z.enum(['position', 'permutation', 'subset', 'exists']).optional(),
  tolerance: z.strictObject({ absolute: z.number().min(0), relative: z.number().min(0).max(1) }).optional(),
  nulls: z.enum(['distinct', 'as_zero']).optional(),
  numberTexts: z.enum(['distinct', 'as_numbers']).optional(),
  emptyTables: z.enum(['equal', 'by_width']).optional(),
  distinct: z.enum(['kept', 'removed']).optional(),
  repairs: z.enum(['none', 'spider']).optional(),
})

const attempt = z.strictObject({ name: z.string().min(1), sql: z.string() })

/** One task of a file. */
export const taskSchema = z
  .strictObject({
    name: z.string().regex(/^[a-z0-9][a-z0-9-]*$/, 'must be lower case letters, digits and dashes'),
    question: z.string().min(1),
    /** What a reader of the question has to know and cannot see in the database. */
    evidence: z.string().optional(),
    mode: sqlDataSchema.shape.mode.default('query'),
    gold: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]).transform((one) => [one].flat()),
    compare: compare.prefault({}),
    conditionColumns: z.array(z.int().min(0)).optional(),
    probes: z.array(z.string()).default([]),
    ignoreColumns: z.array(z.string().regex(/^[^.]+\.[^.]+$/, 'must be table.column')).default([]),
    neighbours: z.strictObject({ subsets: z.int().min(0).max(8), rebuilds: z.int().min(0).max(8) }).optional(),
    efficiencyWeight: z.number().min(0).max(1).default(0),
    /** Default: SQLite's instructions, which are the same every time; of other engines the time. */
    efficiencyBy: z.enum(['steps', 'time']).optional(),
    exploration: explorationSchema.optional(),
    formatWeight: z.number().min(0).max(1).optional(),
    stepValues: z.literal('status').optional(),
    difficulty: z.string().optional(),
    split: z.string().default('train'),
    cheats: z.array(attempt).default([]),
    weak: z.array(attempt).default([]),
  })
  .refine(
    (one) =>
      one.conditionColumns === undefined ||
      ['subset', 'exists'].includes(one.compare.columns ?? presetColumns(one.compare.preset)),
    { path: ['conditionColumns'], message: 'need compare.columns "subset" or "exists"' },
  )
  .refine((one) => one.efficiencyWeight + (one.exploration?.weight ?? 0) + (one.formatWeight ?? 0) <= 1, {
    path: ['efficiencyWeight'],
    message: 'and the weights of exploration and format are more than 1 together',
  })

/** A file of tasks over one database. */
export const taskFileSchema = z.strictObject({
  database: z
    .strictObject({
      name: z.string().regex(/^[a-z0-9][a-z0-9-]*$/, 'must be lower case letters, digits and dashes'),
      engine: z.enum(['sqlite', 'duckdb', 'postgres']).default('sqlite'),
      /** Python, called as `script.py <file> <seed>`; beside this file. Writes SQLite's file, others' SQL as text. */
      script: z.string().optional(),
      /** A finished SQLite file beside this file. */
      file: z.string().optional(),
    })
    .refine((one) => (one.script === undefined) !== (one.file === undefined), 'needs either script or file'),
  neighbours: z
    .strictObject({ subsets: z.int().min(0).max(8), rebuilds: z.int().min(0).max(8) })
    .default({ subsets: 0, rebuilds: 0 }),
  limits: z
    .strictObject({ executeMs: z.number().positive().default(5000), verifyMs: z.number().positive().default(30_000) })
    .prefault({}),
  tasks: z.array(taskSchema).min(1),
})

export type SqlTaskFile = z.infer<typeof taskFileSchema>
export type SqlTaskEntry = SqlTaskFile['tasks'][number]

function presetColumns(preset: (typeof sqlPresetNames)[number]): string {
  return preset === 'spider2' ? 'exists' : 'position'
}
