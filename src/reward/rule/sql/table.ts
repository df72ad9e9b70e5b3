/**
 * A cell by SQLite's storage classes: NULL, INTEGER (bigint), REAL (number), TEXT, BLOB. Integers are never numbers
 * here, so that 64 bits keep their digits.
 */
export type SqlValue = null | bigint | number | string | Uint8Array

/** Rows of one statement, in the order in which they came. Names of columns are not compared by anything here. */
export interface ResultTable {
  readonly columns: readonly string[]
  readonly rows: readonly (readonly SqlValue[])[]
}
