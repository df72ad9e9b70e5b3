import { PaddockError } from '../../core/index.ts'
import {
  type Between,
  type Disposition,
  dispositionOutcomes,
  type MemoryKey,
  type MemoryPage,
  type MemoryQuery,
  type MemorySort,
  type TaskMemory,
} from '../contract/index.ts'
import type { Sql } from '../sql/index.ts'

/** The columns of each key. */
const columnsOf: Readonly<Record<MemoryKey, readonly string[]>> = {
  run: ['run'],
  harness: ['harness'],
  variant: ['variant'],
  version: ['run', 'weights', 'ordinal'],
}

/** Tasks that nobody has a number of stand behind all others. */
const unknownRate = 2

const passRate = `CASE WHEN sum(numbers) > 0 THEN CAST(sum(passed) AS double precision) / sum(numbers) ELSE ${unknownRate} END`

const orders: Readonly<Record<MemorySort, string>> = {
  pass_rate: passRate,
  attempts: 'CAST(sum(attempts) AS double precision)',
  uses: 'CAST(sum(used) AS double precision)',
  last: 'max(last_at)',
}

/** Lines with the number of their weights; those of weights that a trainer went back behind are left out. */
const standing = `SELECT m.*, coalesce((SELECT v.ordinal FROM trainer_versions v WHERE v.run = m.run AND v.label = m.weights), 0) AS ordinal
  FROM memory_lines m WHERE NOT EXISTS (SELECT 1 FROM trainer_versions v JOIN trainer_incarnations j ON j.run = v.run
    AND j.incarnation > v.incarnation AND coalesce(v.step, -1) > coalesce(j.resume_step, -1)
    WHERE v.run = m.run AND v.label = m.weights)`

interface Line extends Record<Disposition['outcome'], number> {
  readonly task: string
  readonly run?: string
  readonly harness?: string
  readonly variant?: string
  readonly weights?: string
  readonly ordinal?: number
  readonly attempts: number
  readonly numbers: number
  readonly passed: number
  readonly nulls: number
  readonly infra: number
  readonly stopped: number
  readonly tokens: number
  readonly most_tokens: number
  readonly turns: number
  readonly reward_sum: number
  readonly reward_squares: number
  readonly last_at: number
  readonly used_at: number
  readonly place: number
  readonly name: string
}

const kept = ['attempts', 'numbers', 'passed', 'nulls', 'infra', 'stopped', 'tokens', 'turns']
const summed = [...kept, 'reward_sum', 'reward_squares', ...dispositionOutcomes]

/** A page of memory. Each line costs what its attempts' lines cost, not what the attempts do. */
export async function readMemory(sql: Sql, query: MemoryQuery): Promise<MemoryPage> {
  const { by, sort, descending, limit } = query
  const keys = [...new Set(['task', ...by.flatMap((key) => columnsOf[key])])]
  // A line's own name: what orders lines that stand at the same place, and what a cursor names.
  const name = keys.map((key) => (key === 'ordinal' ? 'CAST(ordinal AS text)' : key)).join(` || '\u001f' || `)
  const place = orders[sort]
  const where = conditions(sql, query)
  const having = bounds(query)
  const after = query.after === null ? null : cursorOf(query.after, query)
  if (after !== null) {
    const beyond = descending ? '<' : '>'
    having.texts.push(`(${place} ${beyond} ? OR (${place} = ? AND (${name}) > ?))`)
    having.values.push(after.place, after.place, after.name)
  }
  const rows = await sql.all<Line>(
    `SELECT ${keys.join(', ')}, ${summed.map((one) => `sum(${one}) AS ${one}`).join(', ')},
       max(most_tokens) AS most_tokens, max(last_at) AS last_at, max(used_at) AS used_at,
       ${place} AS place, ${name} AS name
     FROM (${standing}) AS lines ${whereOf('WHERE', where.texts)}
     GROUP BY ${keys.join(', ')} ${whereOf('HAVING', having.texts)}
     ORDER BY place ${descending ? 'DESC' : 'ASC'}, name LIMIT ?`,
    ...where.values,
    ...having.values,
    limit + 1,
  )
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  const next = rows.length > limit && last !== undefined ? nextOf(last, query) : null
  return { tasks: page.map((line) => memoryOf(line, by)), next }
}

interface Conditions {
  readonly texts: string[]
  readonly values: unknown[]
}

function conditions(sql: Sql, { runId, harness, variant, taskDigests, versions }: MemoryQuery): Conditions {
  if (versions !== undefined && runId === undefined) {
    throw new PaddockError('BODY_INVALID_SHAPE', 'versions of different runs are not compared', {
      fix: 'Name the run whose weights they are.',
    })
  }
  const found: Conditions = { texts: [], values: [] }
  const add = (text: string, value: unknown): void => {
    if (value === undefined) return
    found.texts.push(text)
    found.values.push(value)
  }
  add('run = ?', runId)
  add('harness = ?', harness)
  add('variant = ?', variant)
  add(`task IN ${sql.dialect.list}`, taskDigests === undefined ? undefined : sql.list(taskDigests))
  within(found, 'ordinal', versions)
  return found
}

function bounds({ passRate: rate, attempts, uses, unusedSince }: MemoryQuery): Conditions {
  const found: Conditions = { texts: [], values: [] }
  if (rate !== undefined) found.texts.push('sum(numbers) > 0')
  within(found, passRate, rate)
  within(found, 'sum(attempts)', attempts)
  within(found, 'sum(used)', uses)
  if (unusedSince !== undefined) {
    found.texts.push('max(used_at) < ?')
    found.values.push(unusedSince)
  }
  return found
}

function within({ texts, values }: Conditions, text: string, between: Between | undefined): void {
  for (const [value, how] of [
    [between?.min ?? null, '>='],
    [between?.max ?? null, '<='],
  ] as const) {
    if (value === null) continue
    texts.push(`${text} ${how} ?`)
    values.push(value)
  }
}

function whereOf(word: 'WHERE' | 'HAVING', texts: readonly string[]): string {
  return texts.length === 0 ? '' : `${word} ${texts.join(' AND ')}`
}

function memoryOf(line: Line, by: readonly MemoryKey[]): TaskMemory {
  const { attempts, numbers, passed, nulls, infra, stopped } = line
  const ended = numbers + nulls
  const mean = numbers === 0 ? null : line.reward_sum / numbers
  return {
    taskDigest: line.task,
    runId: by.includes('run') || by.includes('version') ? (line.run ?? null) : null,
    harness: line.harness ?? null,
    variant: line.variant ?? null,
    version: by.includes('version') ? { ordinal: line.ordinal ?? 0, label: line.weights || null } : null,
    attempts,
    numbers,
    passed,
    meanReward: mean,
    sdReward: mean === null ? null : Math.sqrt(Math.max(0, line.reward_squares / numbers - mean ** 2)),
    nulls,
    infra,
    stopped,
    meanTokens: ended === 0 ? null : line.tokens / ended,
    mostTokens: ended === 0 ? null : line.most_tokens,
    meanTurns: ended === 0 ? null : line.turns / ended,
    uses: {
      used: line.used,
      stale: line.stale,
      filtered: line.filtered,
      no_signal: line.no_signal,
      truncated: line.truncated,
      skipped: line.skipped,
    },
    lastAt: line.last_at,
    usedAt: line.used_at === 0 ? null : line.used_at,
  }
}

function nextOf({ place, name }: Line, query: MemoryQuery): string {
  return Buffer.from(JSON.stringify([orderOf(query), place, name])).toString('base64url')
}

function cursorOf(text: string, query: MemoryQuery): { readonly place: number; readonly name: string } {
  try {
    const found: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    if (Array.isArray(found)) {
      const [order, place, name] = found as readonly unknown[]
      if (order === orderOf(query) && typeof place === 'number' && typeof name === 'string') return { place, name }
    }
  } catch {
    // Told below.
  }
  throw new PaddockError('BODY_INVALID_SHAPE', 'query.after: this is no cursor of such a list of tasks', {
    fix: 'Give `next` of the page before, with the same sort and keys, or leave `after` out.',
  })
}

function orderOf({ sort, descending, by }: MemoryQuery): string {
  return [sort, descending ? 'desc' : 'asc', ...by].join(' ')
}
