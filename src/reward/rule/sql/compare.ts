import { cellOf, goldCellOf } from './cell.ts'
import { eachExists, mappable } from './columns.ts'
import { ordersItsRows } from './order-by.ts'
import { equalRows, type Row, type RowMode } from './rows.ts'
import type { SqlSemantics } from './semantics.ts'
import type { ResultTable } from './table.ts'

/** Whether an answer means what the gold means, and why not in words. */
export interface Comparison {
  readonly equal: boolean
  readonly why: string
}

/** What a comparison takes besides the two tables. */
export interface CompareOptions {
  readonly semantics: SqlSemantics
  /** Text of the gold, for the two semantics that look whether it orders. */
  readonly goldSql: string
  /** Indexes of the gold columns that count (Spider2's `condition_cols`); null: all. Needs `subset` or `exists`. */
  readonly conditionColumns: readonly number[] | null
}

/** Compares an answer with a gold. Pure and total. */
export function compareTables(gold: ResultTable, answer: ResultTable, o: CompareOptions): Comparison {
  const { semantics } = o
  const counted = o.conditionColumns ?? gold.columns.map((_, i) => i)
  const widths = { gold: counted.length, answer: answer.columns.length }
  const facts = `${answer.rows.length} rows of ${widths.answer} columns against ${gold.rows.length} of ${widths.gold}`
  const say = (equal: boolean, what: string): Comparison => ({ equal, why: `${what}: ${facts}` })

  if (gold.rows.length === 0 && answer.rows.length === 0 && semantics.emptyTables === 'equal') {
    return say(true, 'both are empty')
  }
  if (!widthsFit(widths, semantics.columns)) return say(false, 'the number of columns differs')
  const wanted = gold.rows.map((row) => counted.map((i) => goldCellOf(row[i] ?? null, semantics)))
  const given = answer.rows.map((row) => row.map((value) => cellOf(value, semantics)))
  const mode = rowMode(semantics, o.goldSql)
  return equalIn(wanted, given, widths, mode, semantics)
    ? say(true, 'equal')
    : say(false, `different (rows ${mode}, columns ${semantics.columns})`)
}

/** How rows are compared for a gold. */
function rowMode(semantics: SqlSemantics, goldSql: string): RowMode {
  switch (semantics.rows) {
    case 'by_gold':
      return ordersItsRows(goldSql) ? 'ordered' : 'bag'
    case 'by_gold_text':
      return /order\s+by/i.test(goldSql) ? 'ordered' : 'bag'
    default:
      return semantics.rows
  }
}

function widthsFit(widths: { readonly gold: number; readonly answer: number }, columns: SqlSemantics['columns']) {
  switch (columns) {
    case 'position':
    case 'permutation':
      return widths.gold === widths.answer
    case 'subset':
      return widths.gold <= widths.answer
    case 'exists':
      return widths.gold === 0 || widths.answer > 0
  }
}

function equalIn(
  gold: readonly Row[],
  answer: readonly Row[],
  widths: { readonly gold: number; readonly answer: number },
  mode: RowMode,
  { columns, tolerance }: SqlSemantics,
): boolean {
  switch (columns) {
    case 'position':
      return equalRows(gold, answer, mode, tolerance)
    case 'permutation':
    case 'subset':
      return mappable(gold, answer, widths, mode, tolerance)
    case 'exists':
      return eachExists(gold, answer, widths, mode, tolerance)
  }
}
