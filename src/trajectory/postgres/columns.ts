/** Values of a column as SQLite keeps them, and back: there, times are milliseconds, booleans numbers, and JSON is text. */
import type { Connection } from './connection.ts'

export interface Column {
  readonly name: string
  readonly type: string
}

/** The columns of a table of the catalogue, in their order. */
export function columnsOf(db: Connection, table: string): Promise<readonly Column[]> {
  return db.query<Column>(
    `SELECT attname AS name, format_type(atttypid, NULL) AS type FROM pg_attribute
     WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum`,
    [`paddock.${table}`],
  )
}

/** A column as SQLite keeps its value. */
export function toSqlite({ name, type }: Column): string {
  const column = `"${name}"`
  switch (type) {
    case 'timestamp with time zone':
      return `(extract(epoch FROM ${column}) * 1000)::float8 AS ${column}`
    case 'boolean':
      return `${column}::int AS ${column}`
    case 'jsonb':
      return `${column}::text AS ${column}`
    default:
      return column
  }
}

/** Of a value as SQLite keeps it: the type of an array of them, and how one becomes the column's. */
export function toColumn({ name, type }: Column): { readonly from: string; readonly value: string } {
  const value = `given."${name}"`
  switch (type) {
    case 'timestamp with time zone':
      return { from: 'float8[]', value: `to_timestamp(${value} / 1000)` }
    case 'boolean':
      return { from: 'int[]', value: `${value}::boolean` }
    case 'jsonb':
      return { from: 'text[]', value: `${value}::jsonb` }
    default:
      return { from: `${type}[]`, value }
  }
}
