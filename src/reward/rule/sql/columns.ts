import { equalRows, type Row, type RowMode } from './rows.ts'
import type { SqlSemantics } from './semantics.ts'

/** Joint looks at rows after which a search for a column mapping gives up; real tables need a handful. */
const maxLooks = 2000

/**
 * Whether the columns of `gold` can be mapped one to one onto columns of `answer` so that the rows are equal. A partial
 * mapping is dropped as soon as its rows differ, and equal columns are tried once.
 */
export function mappable(
  gold: readonly Row[],
  answer: readonly Row[],
  widths: { readonly gold: number; readonly answer: number },
  mode: RowMode,
  tolerance: SqlSemantics['tolerance'],
): boolean {
  const names = Array.from({ length: widths.answer }, (_, i) => answer.map((row) => row[i]?.key ?? '').join('\0'))
  let looks = 0
  const search = (chosen: readonly number[]): boolean => {
    if (chosen.length === widths.gold) return true
    const part = gold.map((row) => row.slice(0, chosen.length + 1))
    const tried = new Set<string>()
    for (let next = 0; next < widths.answer; next++) {
      const name = names[next] ?? ''
      if (chosen.includes(next) || tried.has(name)) continue
      tried.add(name)
      looks += 1
      if (looks > maxLooks) return false
      const mapping = [...chosen, next]
      if (equalRows(part, project(answer, mapping), mode, tolerance) && search(mapping)) return true
    }
    return false
  }
  return search([])
}

/** Whether each gold column, looked at alone, equals some column of the answer. */
export function eachExists(
  gold: readonly Row[],
  answer: readonly Row[],
  widths: { readonly gold: number; readonly answer: number },
  mode: RowMode,
  tolerance: SqlSemantics['tolerance'],
): boolean {
  const among = Array.from({ length: widths.answer }, (_, i) => project(answer, [i]))
  return Array.from({ length: widths.gold }, (_, i) => project(gold, [i])).every((column) =>
    among.some((other) => equalRows(column, other, mode, tolerance)),
  )
}

function project(rows: readonly Row[], columns: readonly number[]): readonly Row[] {
  return rows.map((row) => columns.flatMap((column) => row[column] ?? []))
}
