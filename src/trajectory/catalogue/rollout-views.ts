import { type Digest, type Id, PaddockError, type RolloutEnd, type Verdict } from '../../core/index.ts'
import type { RolloutRecord, RolloutView, RolloutWork } from '../contract/index.ts'
import { type Sql, wholeRows } from '../sql/index.ts'
import { catalogueTables, type CoveredTable } from './schema.ts'

/** A row of `rollouts`. */
export interface RolloutRow {
  readonly id: Id
  readonly group: Id
  readonly record: string
}

/** How many rollouts are asked for at once. */
const many = 500

/** Rollouts with what was appended to each, in the order of their rows. */
export async function viewsOf(sql: Sql, rows: readonly RolloutRow[]): Promise<readonly RolloutView[]> {
  const views: RolloutView[] = []
  for (let from = 0; from < rows.length; from += many) views.push(...(await some(sql, rows.slice(from, from + many))))
  return views
}

async function some(sql: Sql, rows: readonly RolloutRow[]): Promise<readonly RolloutView[]> {
  const ids = sql.list(rows.map(({ id }) => id))
  const of = async <Row extends object>(table: CoveredTable, order = ''): Promise<ReadonlyMap<Id, readonly Row[]>> => {
    const where = `WHERE rollout IN ${sql.dialect.list} ${order}`
    const found = new Map<Id, Row[]>()
    for (const row of await wholeRows<Row & { rollout: Id }>(sql, table, where, ids)) {
      const before = found.get(row.rollout)
      if (before === undefined) found.set(row.rollout, [row])
      else before.push(row)
    }
    return found
  }
  const { starts, works, ends, taints, labels, verdicts } = catalogueTables
  const started = await of<{ at: number }>(starts)
  const worked = await of<{ record: string }>(works)
  const ended = await of<{ at: number; end: RolloutEnd; detail: string }>(ends)
  const tainted = await of<{ cause: string }>(taints, 'ORDER BY n')
  const labelled = await of<{ name: string; value: string }>(labels, 'ORDER BY n')
  const judged = await of<{ record: string }>(verdicts, 'ORDER BY n')
  const tasks = new Map(
    (
      await wholeRows<{ id: Id; task: Digest }>(
        sql,
        catalogueTables.groups,
        `WHERE id IN ${sql.dialect.list}`,
        sql.list([...new Set(rows.map(({ group }) => group))]),
      )
    ).map(({ id, task }) => [id, task]),
  )
  const taskOf = (group: Id): Digest => {
    const task = tasks.get(group)
    if (task === undefined) throw new PaddockError('NOT_FOUND', `there is no group ${group}`)
    return task
  }
  return rows.map(({ id, group, record }) => {
    const work = worked.get(id)?.[0]
    const end = ended.get(id)?.[0]
    return {
      ...parseOwn<RolloutRecord>(record),
      taskDigest: taskOf(group),
      work: work === undefined ? null : parseOwn<RolloutWork>(work.record),
      startedAt: started.get(id)?.[0]?.at ?? null,
      endedAt: end?.at ?? null,
      end: end?.end ?? null,
      endDetail: end?.detail ?? '',
      taints: (tainted.get(id) ?? []).map(({ cause }) => cause),
      verdicts: (judged.get(id) ?? []).map((row) => parseOwn<Verdict>(row.record)),
      labels: Object.fromEntries((labelled.get(id) ?? []).map(({ name, value }) => [name, value])),
    }
  })
}

/** JSON that only this folder writes. */
function parseOwn<T>(text: string): T {
  return JSON.parse(text) as T
}
