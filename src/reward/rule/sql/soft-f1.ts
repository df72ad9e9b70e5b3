import { cellOf } from './cell.ts'
import type { ResultTable } from './table.ts'

/**
 * Soft-F1 of BIRD mini-dev (`evaluation_f1.py`): duplicate rows dropped, rows aligned by their position, then per row
 * the fractions of gold's width that are shared, only predicted and only gold. A number in [0, 1]; two empty results: 1.
 */
export function softF1(gold: ResultTable, answer: ResultTable): number {
  const wanted = distinctRows(gold)
  const given = distinctRows(answer)
  if (wanted.length === 0 && given.length === 0) return 1
  let both = 0
  let onlyGiven = Math.max(0, given.length - wanted.length)
  let onlyWanted = 0
  for (const [i, row] of wanted.entries()) {
    const other = given[i]
    if (other === undefined) {
      onlyWanted += 1
      continue
    }
    const shared = other.filter((key) => row.includes(key)).length
    both += shared / row.length
    onlyGiven += (other.length - shared) / row.length
    onlyWanted += row.filter((key) => !other.includes(key)).length / row.length
  }
  const precision = both === 0 ? 0 : both / (both + onlyGiven)
  const recall = both === 0 ? 0 : both / (both + onlyWanted)
  return precision + recall === 0 ? 0 : (2 * precision * recall) / (precision + recall)
}

function distinctRows(table: ResultTable): readonly (readonly string[])[] {
  const rows = table.rows.map((row) => row.map((value) => cellOf(value, exact).key))
  return [...new Map(rows.map((row) => [JSON.stringify(row), row])).values()]
}

const exact = { nulls: 'distinct', numberTexts: 'distinct' } as const
