import { z } from 'zod'
import {
  type Between,
  type CatalogueReader,
  type MemoryPage,
  memoryKeys,
  type MemoryQuery,
  memorySorts,
} from '../trajectory/index.ts'
import { present } from '../core/index.ts'

/** Bounds as they are written: `0.2..0.8`, `3..`, `..5`, or one number for both. Null: it is none. */
export function betweenOf(text: string): Between | null {
  const [first = '', last = first, more] = text.split('..')
  const [min, max] = [bound(first), bound(last)]
  if (more !== undefined || min === undefined || max === undefined) return null
  if (min === null && max === null) return null
  return min !== null && max !== null && min > max ? null : { min, max }
}

/** Undefined: it is no number. */
function bound(text: string): number | null | undefined {
  if (text === '') return null
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : undefined
}

/** How {@link betweenOf} is told to people. */
export const betweenHelp = 'must be like 0.2..0.8, 3.., ..5 or 4'

const between = z.string().refine((text) => betweenOf(text) !== null, betweenHelp)
/** A moment as it is written, in milliseconds. Null: it is none. */
export function momentOf(text: string): number | null {
  return z.iso
    .date()
    .or(z.iso.datetime({ offset: true }))
    .safeParse(text).success
    ? Date.parse(text)
    : null
}

/** How {@link momentOf} is told to people. */
export const momentHelp = 'must be a date such as 2026-03-01 or a time such as 2026-03-01T12:00:00Z'

const moment = z.string().refine((text) => momentOf(text) !== null, momentHelp)
const keys = z
  .string()
  .refine((text) => splitKeys(text) !== null, `must be of ${memoryKeys.join(', ')}, separated by commas`)

/** By what lines are told apart, as it is written. Null: one of them is no such key. */
export function splitKeys(text: string): MemoryQuery['by'] | null {
  const named = text.split(',').map((part) => part.trim())
  const found = memoryKeys.filter((key) => named.includes(key))
  return found.length === new Set(named).size ? found : null
}

/** Tasks by what is remembered of them, as a query of HTTP has it. */
export const taskQuery = z.strictObject({
  run: z.string().min(1).optional(),
  harness: z.string().min(1).optional(),
  variant: z.string().optional(),
  /** Digests, separated by commas. */
  task: z.string().min(1).optional(),
  versions: between.optional(),
  pass_rate: between.optional(),
  attempts: between.optional(),
  uses: between.optional(),
  unused_since: moment.optional(),
  by: keys.optional(),
  sort: z.enum(memorySorts).default('pass_rate'),
  order: z.enum(['asc', 'desc']).default('asc'),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
  after: z.string().min(1).optional(),
})

export function memoryQueryOf(asked: z.output<typeof taskQuery>): MemoryQuery {
  const bounds = (text: string | undefined): Between | undefined =>
    text === undefined ? undefined : (betweenOf(text) ?? undefined)
  return {
    ...present({
      runId: asked.run,
      harness: asked.harness,
      variant: asked.variant,
      taskDigests: asked.task?.split(','),
      versions: bounds(asked.versions),
      passRate: bounds(asked.pass_rate),
      attempts: bounds(asked.attempts),
      uses: bounds(asked.uses),
      unusedSince: asked.unused_since === undefined ? undefined : (momentOf(asked.unused_since) ?? undefined),
    }),
    by: asked.by === undefined ? [] : (splitKeys(asked.by) ?? []),
    sort: asked.sort,
    descending: asked.order === 'desc',
    limit: asked.limit,
    after: asked.after ?? null,
  }
}

const number = z.number().nullable()
const count = z.int()

/** A page of tasks as programs get it. */
export const taskPage = z.strictObject({
  tasks: z.array(
    z.strictObject({
      digest: z.string(),
      name: z.string(),
      environment: z.string(),
      split: z.string(),
      run_id: z.string().nullable(),
      harness: z.string().nullable(),
      variant: z.string().nullable(),
      version: z.strictObject({ version: z.int(), label: z.string().nullable() }).nullable(),
      attempts: count,
      numbers: count,
      passed: count,
      pass_rate: number,
      mean_reward: number,
      sd_reward: number,
      nulls: count,
      infra: count,
      stopped: count,
      mean_tokens: number,
      most_tokens: number,
      mean_turns: number,
      uses: z.strictObject({
        used: count,
        stale: count,
        filtered: count,
        no_signal: count,
        truncated: count,
        skipped: count,
      }),
      last_at: z.number(),
      used_at: number,
    }),
  ),
  next: z.string().nullable(),
})

/** A page with what its tasks are called. */
export async function taskPageView(
  { tasks, next }: MemoryPage,
  catalogue: Pick<CatalogueReader, 'task'>,
): Promise<z.input<typeof taskPage>> {
  const known = new Map(
    await Promise.all(
      [...new Set(tasks.map((line) => line.taskDigest))].map(
        async (digest) => [digest, await catalogue.task(digest)] as const,
      ),
    ),
  )
  return {
    tasks: tasks.map((line) => {
      const task = known.get(line.taskDigest)
      return {
        digest: line.taskDigest,
        name: task?.name ?? '',
        environment: task?.environment ?? '',
        split: task?.split ?? '',
        run_id: line.runId,
        harness: line.harness,
        variant: line.variant,
        version: line.version === null ? null : { version: line.version.ordinal, label: line.version.label },
        attempts: line.attempts,
        numbers: line.numbers,
        passed: line.passed,
        pass_rate: line.numbers === 0 ? null : line.passed / line.numbers,
        mean_reward: line.meanReward,
        sd_reward: line.sdReward,
        nulls: line.nulls,
        infra: line.infra,
        stopped: line.stopped,
        mean_tokens: line.meanTokens,
        most_tokens: line.mostTokens,
        mean_turns: line.meanTurns,
        uses: { ...line.uses },
        last_at: line.lastAt,
        used_at: line.usedAt,
      }
    }),
    next,
  }
}
