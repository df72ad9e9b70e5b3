/**
 * The committed limits of the counts, a line for each:
 *
 *     src.lines 114285
 *     src.lines +120 a node resumes what it had begun
 *
 * The first line is the count when it was last lowered, the others are raises with their reasons. Lines of one count are
 * added up, so what two branches raise is right when both are merged.
 */
import type { Count, Part } from './counts.ts'

export const baselineFile = 'test/house/baseline.txt'

const head = `# Counts that only fall: ./check --fast holds them. A count may rise by a line "name +amount why" below its own.
# scripts/house --raise "why" writes such lines, scripts/house --lower takes over counts that fell.
`

interface Limit {
  readonly base: number
  readonly raises: readonly { readonly amount: number; readonly line: string }[]
}

export class BaselineError extends Error {}

export type Baseline = ReadonlyMap<string, Limit>

/** Throws {@link BaselineError} for a line that is none. */
export function readBaseline(text: string): Baseline {
  const limits = new Map<string, Limit>()
  for (const line of text.split('\n')) {
    if (line.trim() === '' || line.startsWith('#')) continue
    const [, key = '', sign = '', digits = '', why = ''] = /^(\S+) (\+?)(\d+)(?: (\S.*))?$/.exec(line) ?? []
    if (key === '' || (sign === '+') !== (why !== '')) {
      throw new BaselineError(`${baselineFile}: not "name count" and not "name +amount why": ${line}`)
    }
    const { base, raises } = limits.get(key) ?? { base: -1, raises: [] }
    // A merge can leave two: the higher one holds, since raises may be part of it, and `--lower` makes one of them.
    limits.set(
      key,
      sign === ''
        ? { base: Math.max(base, Number(digits)), raises }
        : { base, raises: [...raises, { amount: Number(digits), line }] },
    )
  }
  return limits
}

/** The most that a count may be; a count below its target may be anything up to it. Null: the baseline lacks it, and it has no target. */
function limitOf({ key, target }: Count, baseline: Baseline): number | null {
  const { base, raises } = baseline.get(key) ?? { base: -1, raises: [] }
  if (base === -1) return target
  return Math.max(target ?? 0, base + raises.reduce((sum, { amount }) => sum + amount, 0))
}

export interface Compared {
  /** Why it is red, a paragraph for each count. */
  readonly risen: readonly string[]
  /** Counts that fell. */
  readonly fallen: readonly string[]
}

/** `before` makes the counts of commits that wrote the baseline, the newest first; they are asked for when something rose. */
export function compare(
  counts: readonly Count[],
  baseline: Baseline,
  before: () => Iterable<readonly Count[]>,
): Compared {
  const held = counts.filter(({ isReportOnly }) => !isReportOnly)
  const over = held.filter((count) => count.value > (limitOf(count, baseline) ?? -1))
  const older = before()[Symbol.iterator]()
  const known: (readonly Count[])[] = []
  const risen = over.map((count) => {
    const limit = limitOf(count, baseline)
    if (limit === null) return `${count.key} (${count.says}) is ${count.value} and has no line in ${baselineFile}`
    const parts = grown(count, within(count.key, limit, known, older))
    return [
      `${count.key} is ${count.value}, ${count.value - limit} over its limit ${limit}: ${count.says}`,
      ...parts.map(({ amount, note }) => (amount === 1 ? `    ${note}` : `    ${note} +${amount}`)),
    ].join('\n')
  })
  const fallen = held.flatMap((count) => {
    const limit = limitOf(count, baseline)
    return limit !== null && count.value < limit && limit > (count.target ?? 0)
      ? [`${count.key} ${limit} -> ${count.value}`]
      : []
  })
  return { risen, fallen }
}

/** The count in the newest of these that kept to its limit; null: none did. Counts once made are kept. */
function within(
  key: string,
  limit: number,
  known: (readonly Count[])[],
  older: Iterator<readonly Count[]>,
): Count | null {
  const fitting = (counts: readonly Count[]): Count | undefined =>
    counts.find((count) => count.key === key && count.value <= limit)
  for (let at = 0; ; at += 1) {
    if (at === known.length) {
      const next = older.next()
      if (next.done === true) return null
      known.push(next.value)
    }
    const found = fitting(known[at] ?? [])
    if (found !== undefined) return found
  }
}

/** New places, the largest first. */
function grown(now: Count, before: Count | null, most = 12): readonly Part[] {
  if (before === null) return now.parts.length > most ? [] : now.parts
  const rest = new Map<string, number>()
  // A note names lines of its file, which move: parts are the same by file and what stands behind the line.
  const same = ({ path, note }: Part): string => `${path} ${note.replace(/:\d+|\(\d+[^)]*\)/g, '')}`
  for (const one of before.parts) rest.set(same(one), (rest.get(same(one)) ?? 0) + one.amount)
  const more = now.parts.flatMap((one) => {
    const known = rest.get(same(one)) ?? 0
    rest.set(same(one), Math.max(0, known - one.amount))
    return one.amount > known ? [{ ...one, amount: one.amount - known }] : []
  })
  const sorted = more.toSorted((a, b) => b.amount - a.amount)
  if (sorted.length <= most) return sorted
  return [...sorted.slice(0, most), { path: '', amount: 1, note: `and ${sorted.length - most} more` }]
}

/** With counts that fell as their new limits, and without raises that are in them; counts that it lacks are added. */
export function lowered(counts: readonly Count[], baseline: Baseline): string {
  return textOf(counts, (count) => {
    const limit = limitOf(count, baseline)
    const known = baseline.get(count.key)
    if (limit === null || known === undefined || count.value < limit) return [`${count.key} ${count.value}`]
    return [`${count.key} ${known.base}`, ...known.raises.map(({ line }) => line)]
  })
}

/** With a raise for each count that rose. Banned words are never raised. */
export function raised(counts: readonly Count[], baseline: Baseline, why: string): string {
  return textOf(counts, (count) => {
    const limit = limitOf(count, baseline)
    const known = baseline.get(count.key)
    if (limit === null || known === undefined) return [`${count.key} ${count.value}`]
    const lines = [`${count.key} ${known.base}`, ...known.raises.map(({ line }) => line)]
    if (count.value <= limit) return lines
    if (count.key.startsWith('banned.')) {
      throw new BaselineError(`${count.key} is not raised: say it in other words. scripts/house --list ${count.key}`)
    }
    return [...lines, `${count.key} +${count.value - limit} ${why}`]
  })
}

const textOf = (counts: readonly Count[], linesOf: (count: Count) => readonly string[]): string =>
  `${head}${counts
    .filter(({ isReportOnly }) => !isReportOnly)
    .flatMap(linesOf)
    .join('\n')}\n`
