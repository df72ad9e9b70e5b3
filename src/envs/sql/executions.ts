import { spiderRepaired, withoutDistinct } from '../../reward/index.ts'
import type { Box } from '../../sandbox/index.ts'
import type { SqlData } from './data.ts'
import { engineOf } from './engines/index.ts'
import { neighbourRequests, requireNeighbours } from './neighbours.ts'
import { askAll, type RunnerRequest, verifierLimits } from './runner.ts'
import type { RunnerAnswer } from './wire.ts'

/** What a statement or script gave on one database. */
export type Outcome = RunnerAnswer<'query'> | RunnerAnswer<'script'>

/** What is known before anybody's submission is looked at. */
export interface GoldRuns {
  /** Paths in the box: the task's database, then its neighbours. */
  readonly databases: readonly string[]
  /** By gold, then by database. */
  readonly golds: readonly (readonly Outcome[])[]
  /** Each gold once more on the task's database. */
  readonly again: readonly Outcome[]
  /** A write task's database as it was; null for queries. */
  readonly untouched: Outcome | null
}

/** Makes the neighbours and runs every gold on all databases, in one process of the box. Throws `TASK_INVALID`. */
export async function runGolds(box: Box, data: SqlData, signal: AbortSignal): Promise<GoldRuns> {
  const making = neighbourRequests(data)
  const own = engineOf(data.database).database
  const databases = [own, ...making.map(({ out }) => out)]
  const runs = [
    ...data.golds.flatMap((gold) => databases.map((db) => requestOf(data, db, gold))),
    ...data.golds.map((gold) => requestOf(data, own, gold)),
    ...(data.mode === 'write' ? [requestOf(data, own, '')] : []),
  ]
  const shown = `sql ${data.mode}: gold on ${databases.length} databases`
  const answers = await askAll([...making, ...runs], box, optionsOf(data, shown, signal))
  requireNeighbours(data, answers.slice(0, making.length))
  // Answers come in the order of the requests: behind the neighbours stand statements only.
  const outcomes = answers.slice(making.length) as readonly Outcome[]
  const width = databases.length
  const count = data.golds.length
  return {
    databases,
    golds: data.golds.map((_, i) => outcomes.slice(i * width, (i + 1) * width)),
    again: outcomes.slice(count * width, count * width + count),
    untouched: data.mode === 'write' ? (outcomes.at(-1) ?? null) : null,
  }
}

/** Runs a submission on all databases, up to the first on which it fails, in a process that has never seen a gold. */
export async function runSubmission(
  box: Box,
  data: SqlData,
  runs: { readonly databases: readonly string[]; readonly sql: string; readonly signal: AbortSignal },
): Promise<readonly Outcome[]> {
  // One that fails is wrong, and one that does not end would take its time limit again on each database.
  const requests = runs.databases.map((db) => ({ ...requestOf(data, db, runs.sql), together: true as const }))
  const shown = `sql ${data.mode}: submission on ${requests.length} databases`
  return askAll(requests, box, optionsOf(data, shown, runs.signal))
}

function requestOf(
  { mode, probes, semantics }: SqlData,
  db: string,
  written: string,
): RunnerRequest<'query'> | RunnerRequest<'script'> {
  const repaired = semantics.repairs === 'spider' ? spiderRepaired(written) : written
  const sql = semantics.distinct === 'removed' ? withoutDistinct(repaired) : repaired
  return mode === 'query' ? { op: 'query', db, sql } : { op: 'script', db, sql, state: true, probes }
}

function optionsOf(data: SqlData, shown: string, signal: AbortSignal) {
  return {
    engine: engineOf(data.database),
    limits: { ...verifierLimits, timeoutMs: data.limits.verifyMs },
    shown,
    signal,
  }
}
