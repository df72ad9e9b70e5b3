import { type ColumnValue, type DigestedTable, insertOf, rowDigest, selectOf, whole } from '../sqlite/index.ts'
import type { Sql } from './sql.ts'

/** All rows of a selection, whose digests are checked. `rest` begins behind the name of the table. Throws `STORE_CORRUPT`. */
export async function wholeRows<Row extends object>(
  sql: Sql,
  table: DigestedTable,
  rest: string,
  ...values: readonly unknown[]
): Promise<readonly Row[]> {
  return (await sql.all<Row>(selectOf(table, rest), ...values)).map((row) => whole(table, row))
}

/** A row with its digest; `conflict` says what happens where the row is there already. */
export async function insert<Column extends string>(
  sql: Sql,
  table: DigestedTable<Column>,
  row: Readonly<Record<Column, ColumnValue>>,
  conflict = '',
): Promise<void> {
  const values = table.columns.map((column) => row[column])
  await sql.all(insertOf(table, [], conflict), ...values, rowDigest(values))
}
