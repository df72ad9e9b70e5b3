import type { SessionLog } from '../contract/index.ts'
import type { DropReason, MaskReason, OneRowRule, Row, SelectionQuery } from '../rows-contract.ts'
import { buildRows, type RowOptions } from '../rows/index.ts'

/** What of a rollout is exported. */
export interface Surveyed {
  /** Rows that are left out, by id. */
  readonly leave: ReadonlyMap<string, DropReason>
  readonly kept: number
  /** Why sampled segments of its rows are not trained. */
  readonly maskReasons: readonly MaskReason[]
}

interface SeenRow {
  readonly id: string
  readonly tokens: number
  readonly trains: boolean
  /** When the last call of the row began. */
  readonly lastCallAt: number
}

/** Whether the query asks for something that only a rollout's rows can tell. */
export function needsSurvey({ trainedRowsOnly, oneRowPerRollout }: SelectionQuery): boolean {
  return trainedRowsOnly === true || (oneRowPerRollout !== undefined && oneRowPerRollout !== 'split-advantage')
}

/** Looks through a rollout's sessions before any of its rows is handed on, one session in memory at a time. */
export async function survey(
  logs: AsyncIterable<SessionLog>,
  options: RowOptions,
  query: SelectionQuery,
): Promise<Surveyed> {
  const leave = new Map<string, DropReason>()
  const kept: SeenRow[] = []
  const reasons = new Set<MaskReason>()
  for await (const log of logs) {
    const startOf = new Map(log.calls.map(({ intent }) => [intent.id, intent.startedAt]))
    for (const row of buildRows(log, options).rows) {
      for (const { maskReason } of row.segments) if (maskReason !== null) reasons.add(maskReason)
      const seen = seenRow(row, row.leafCallId === null ? 0 : (startOf.get(row.leafCallId) ?? 0))
      if (query.trainedRowsOnly === true && !seen.trains) leave.set(seen.id, 'nothing_to_train')
      else kept.push(seen)
    }
  }
  const maskReasons = [...reasons]
  const only = chosen(kept, query.oneRowPerRollout)
  if (only === null) return { leave, kept: kept.length, maskReasons }
  for (const { id } of kept) if (id !== only.id) leave.set(id, 'row_surplus')
  return { leave, kept: 1, maskReasons }
}

function seenRow(row: Row, lastCallAt: number): SeenRow {
  return { id: row.id, tokens: row.tokens.length, trains: row.mask.includes(1), lastCallAt }
}

/** The row that stands for its rollout; null where all stay. Of equally long ones the first. */
function chosen(rows: readonly SeenRow[], rule: OneRowRule | undefined): SeenRow | null {
  if (rule === undefined || rule === 'split-advantage') return null
  // Rows come in the order in which their last calls were recorded, which decides within one millisecond.
  const isBetter = (row: SeenRow, best: SeenRow): boolean =>
    rule === 'longest' ? row.tokens > best.tokens : row.lastCallAt >= best.lastCallAt
  return rows.reduce<SeenRow | null>((best, row) => (best === null || isBetter(row, best) ? row : best), null)
}
