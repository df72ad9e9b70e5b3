import type { Id } from '../../core/index.ts'
import { first, type Sql } from '../sql/index.ts'
import { catalogueTables } from './schema.ts'

const { taints, labels, verdicts } = catalogueTables
/** What can come to a rollout after its end; the rows of each table are numbered as they come. */
const late = [taints, labels, verdicts]

/** The last row of each table: one step in each primary key, however long the tables are. */
export async function markOf(sql: Sql): Promise<string> {
  const last = late.map(({ name }, at) => `(SELECT max(n) FROM ${name}) AS t${at}`)
  const row = (await first<Record<string, number | null>>(sql, `SELECT ${last.join(', ')}`)) ?? {}
  return late.map((_, at) => Number(row[`t${at}`] ?? 0)).join('.')
}

/** Rollouts of a run, or of all, with a row behind the mark. */
export async function touchedSince(sql: Sql, mark: string, runId: Id | null): Promise<readonly Id[]> {
  const from = mark.split('.').map(Number)
  const ofRun = runId === null ? '' : 'AND r.run = ?'
  const each = late.map(
    ({ name }) => `SELECT t.rollout AS id FROM ${name} t JOIN rollouts r ON r.id = t.rollout WHERE t.n > ? ${ofRun}`,
  )
  const values = late.flatMap((_, at) => [from[at] ?? 0, ...(runId === null ? [] : [runId])])
  return (await sql.all<{ id: Id }>(each.join(' UNION '), ...values)).map(({ id }) => id)
}
