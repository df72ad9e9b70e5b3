import { type RVes, rVes } from '../../reward/index.ts'
import type { Box } from '../../sandbox/index.ts'
import type { SqlData } from './data.ts'
import { engineOf } from './engines/index.ts'
import { askAll, type RunnerRequest, verifierLimits } from './runner.ts'

/** Pairs of runs, and seconds that all of them should not take much longer than. */
const most = { pairs: 20, seconds: 5 }
/** Runs of one statement before it is the other's turn: whatever slows the machine slows both. */
const inTurn = 5

/** A measured R-VES, or why there is none: then nobody can say how fast the query is, and its reward is null. */
export type Timing = { readonly ok: true; readonly rVes: RVes } | { readonly ok: false; readonly reason: string }

/**
 * Times a right submission against a gold on the task's own database, in turns, in the verifier's box. Each turn is a
 * process of its own. A submission that is the gold word by word is as fast as the gold, without a measurement.
 */
export async function timeSubmission(
  box: Box,
  data: SqlData,
  { gold, sql, signal }: { readonly gold: string; readonly sql: string; readonly signal: AbortSignal },
): Promise<Timing> {
  if (plain(gold) === plain(sql)) return { ok: true, rVes: { timeRatio: 1, score: 1 } }
  const engine = engineOf(data.database)
  const turns = async (runs: readonly number[]): Promise<readonly (readonly number[])[] | string> => {
    const requests = runs.flatMap((count) => [gold, sql].map((one) => request(engine.database, one, count)))
    // A turn warms up with one run more.
    const limits = { ...verifierLimits, timeoutMs: 4 * data.limits.verifyMs }
    const shown = `sql timing: ${runs.length} turns`
    const answers = await askAll<'time'>(requests, box, { engine, limits, shown, signal })
    const failed = answers.find((answer) => answer.status === 'error')
    if (failed?.status === 'error') return `${failed.kind}: ${failed.message}`
    return answers.map((answer) => (answer.status === 'ok' ? answer.seconds : []))
  }
  const first = await turns([1])
  if (typeof first === 'string') return { ok: false, reason: first }
  const once = first.flat().reduce((sum, seconds) => sum + seconds, 0)
  const pairs = Math.max(1, Math.min(most.pairs, Math.floor(most.seconds / once)))
  const counts = Array.from({ length: Math.ceil(pairs / inTurn) }, (_, i) => Math.min(inTurn, pairs - i * inTurn))
  const told = await turns(counts)
  if (typeof told === 'string') return { ok: false, reason: told }
  const ratios = counts.flatMap((_, turn) => ratiosOf(told[2 * turn] ?? [], told[2 * turn + 1] ?? []))
  const found = rVes(ratios)
  return found === null ? { ok: false, reason: 'the clock gave no times' } : { ok: true, rVes: found }
}

function request(db: string, sql: string, runs: number): RunnerRequest<'time'> {
  return { op: 'time', db, sql, runs, budgetMs: 1000 * most.seconds }
}

function ratiosOf(gold: readonly number[], own: readonly number[]): readonly number[] {
  const count = Math.min(gold.length, own.length)
  return Array.from({ length: count }, (_, i) => (gold[i] ?? Number.NaN) / (own[i] ?? Number.NaN))
}

function plain(sql: string): string {
  return sql
    .replaceAll(/\s+/g, ' ')
    .replace(/[\s;]+$/, '')
    .trim()
}
