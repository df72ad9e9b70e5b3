import { z } from 'zod'
import type { DatabaseState, Probe, ResultTable, SqlValue } from '../../reward/index.ts'

/**
 * What the program in the box (`sandboxes/sql/frame.py`) answers. A cell is null or a text whose first letter is its
 * storage class: `i` digits, `r` a double as Python writes it, `t` text, `b` hex.
 */
const cell = z
  .string()
  .nullable()
  .transform((text, context): SqlValue => {
    if (text === null) return null
    const body = text.slice(1)
    switch (text[0]) {
      case 'i':
        return BigInt(body)
      case 'r':
        return body.endsWith('inf') ? (body.startsWith('-') ? -Infinity : Infinity) : Number(body)
      case 't':
        return body
      case 'b':
        return Buffer.from(body, 'hex')
      default:
        context.addIssue(`unknown storage class ${JSON.stringify(text[0])}`)
        return z.NEVER
    }
  })
const cells = z.array(z.array(cell))

const failure = z.object({
  status: z.literal('error'),
  /**
   * `refused`: the guard denied it. `sql`: SQLite's own error. `broken`: the program itself failed, which says nothing
   * of the statement.
   */
  kind: z.enum(['refused', 'sql', 'timeout', 'memory', 'too_large', 'broken']),
  message: z.string(),
})

/** A statement that did not give a result, and why. */
export type RunnerFailure = z.infer<typeof failure>

const ok = <Shape extends z.core.$ZodLooseShape>(shape: Shape) =>
  z.union([z.object({ status: z.literal('ok'), ...shape }), failure])

const shown = { columns: z.array(z.string()), rows: cells, more: z.boolean(), steps: z.int() }

const state: z.ZodType<DatabaseState> = z.object({
  tables: z.array(
    z.object({
      name: z.string(),
      kind: z.enum(['table', 'view']),
      columns: z.array(z.object({ name: z.string(), type: z.string(), notNull: z.boolean(), key: z.int() })),
      foreignKeys: z.array(z.array(z.string())),
      rows: cells,
    }),
  ),
  indexes: z.array(z.object({ table: z.string(), columns: z.array(z.string().nullable()), unique: z.boolean() })),
  objects: z.array(
    z.object({ kind: z.enum(['trigger', 'rule', 'function', 'macro']), on: z.string(), text: z.string() }),
  ),
})
const probe: z.ZodType<Probe> = z.object({ ok: z.boolean(), rows: cells })

/** Answers by operation. */
export const answerSchemas = {
  query: ok(shown),
  sample: ok(shown),
  script: ok({ ...shown, changes: z.int(), state: state.optional(), probes: z.array(probe).default([]) }),
  tables: ok({ tables: z.array(z.object({ name: z.string(), kind: z.string(), rows: z.int() })) }),
  describe: ok({
    name: z.string(),
    columns: z.array(
      z.object({
        name: z.string(),
        type: z.string(),
        notNull: z.boolean(),
        default: z.string().nullable(),
        key: z.int(),
      }),
    ),
    foreignKeys: z.array(z.object({ from: z.string(), table: z.string(), to: z.string().nullable() })),
    indexes: z.array(z.object({ columns: z.array(z.string().nullable()), unique: z.boolean() })),
  }),
  submit: ok({ taken: z.boolean() }),
  time: ok({ seconds: z.array(z.number().positive()) }),
  build: ok({}),
  subset: ok({}),
} as const

export type RunnerAnswer<Op extends keyof typeof answerSchemas> = z.infer<(typeof answerSchemas)[Op]>

/** What a request says, by operation. Paths are of the box. */
export interface RunnerRequests {
  readonly query: { readonly db: string; readonly sql: string }
  readonly script: {
    readonly db: string
    readonly sql: string
    readonly state?: boolean
    readonly probes?: readonly string[]
  }
  readonly sample: { readonly db: string; readonly table: string; readonly maxRows: number }
  readonly tables: { readonly db: string }
  readonly describe: { readonly db: string; readonly table: string }
  readonly submit: { readonly path: string; readonly sql: string }
  /** At most so many runs, and no further one after `budgetMs`. */
  readonly time: { readonly db: string; readonly sql: string; readonly runs: number; readonly budgetMs: number }
  readonly build: { readonly script: string; readonly seed: number; readonly out: string }
  readonly subset: { readonly db: string; readonly out: string; readonly seed: number; readonly fraction: number }
}

/** The result of a query as the comparators take it. */
export function tableOf(answer: {
  readonly columns: readonly string[]
  readonly rows: ResultTable['rows']
}): ResultTable {
  return { columns: answer.columns, rows: answer.rows }
}
