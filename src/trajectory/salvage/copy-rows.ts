import type { Database, Statement } from 'better-sqlite3'
import type { ColumnValue, DigestedTable } from '../sqlite/index.ts'
import { asStoreError, hasDigest, Statements } from '../sqlite/index.ts'

/** How many rows of a table came over, and what kept the others. */
export interface Copied {
  readonly copied: number
  readonly damaged: readonly string[]
}

type Row = Readonly<Record<string, ColumnValue>>

/** Rowids that are tried one by one where a table cannot be read in order. */
const mostTried = 2_000_000

/** Of those, how many in a row may give nothing before the rest is given up. */
const mostMissed = 100_000

/**
 * Copies the rows of a table that have their digests, one page of the file after the other where it is whole, and row by
 * row around what is not. `accept` may refuse a row with a reason.
 */
export function copyRows(
  from: Database,
  into: Database,
  table: DigestedTable,
  accept: (row: Row) => string | null = () => null,
): Copied {
  const damaged: string[] = []
  let copied = 0
  const insert = inserter(into, table.name)
  const take = (row: Row): void => {
    const refused = hasDigest(table, row) ? accept(row) : 'it does not have its digest'
    if (refused === null) {
      try {
        insert(row)
        copied += 1
        return
      } catch (error) {
        damaged.push(`${table.name}: ${asStoreError(error, 'a row').message}`)
        return
      }
    }
    damaged.push(`${table.name}, ${nameOf(table, row)}: ${refused}`)
  }
  into.transaction(() => {
    for (const row of rowsOf(from, table.name, (why) => damaged.push(`${table.name}: ${why}`))) take(row)
  })()
  return { copied, damaged }
}

/** All rows that can be read, in order; what cannot is told. */
function* rowsOf(db: Database, table: string, unreadable: (why: string) => void): Iterable<Row> {
  const statements = new Statements(db)
  const hasRowid = !/WITHOUT ROWID/.test(
    String(db.prepare(`SELECT sql FROM sqlite_master WHERE name = ?`).pluck().get(table)),
  )
  const text = hasRowid ? `SELECT rowid AS "rowid of row", * FROM ${table} NOT INDEXED` : `SELECT * FROM ${table}`
  let last = 0
  try {
    for (const row of statements.each<Row>(hasRowid ? `${text} ORDER BY rowid` : text)) {
      if (hasRowid) last = Number(row['rowid of row'])
      yield row
    }
    return
  } catch (error) {
    unreadable(asStoreError(error, 'what follows').message)
    if (!hasRowid) return
  }
  const one = prepared(db, `${text} WHERE rowid = ?`)
  if (one === null) return
  const end = lastRowid(statements, table)
  let missed = 0
  for (let rowid = last + 1; rowid <= end && missed < mostMissed; rowid += 1) {
    missed += 1
    try {
      const row = one.get(rowid)
      if (row === undefined) continue
      missed = 0
      last = rowid
      yield row
    } catch {
      // On the same damaged page: told above.
    }
  }
  if (missed === mostMissed)
    unreadable(`the ${mostMissed} rows behind row ${last} gave nothing; none was tried behind them`)
}

/** Null where the database cannot even say what the table is. */
function prepared(db: Database, sql: string): Statement<[number], Row> | null {
  try {
    return db.prepare<[number], Row>(sql)
  } catch {
    return null
  }
}

function lastRowid(statements: Statements, table: string): number {
  try {
    const end = statements.get<{ n: number | null }>(`SELECT max(rowid) AS n FROM ${table}`)?.n ?? 0
    return Math.min(end, mostTried)
  } catch {
    return mostTried
  }
}

function inserter(db: Database, table: string): (row: Row) => void {
  const columns = db
    .prepare<[], { name: string }>(`SELECT name FROM pragma_table_info('${table}')`)
    .all()
    .map(({ name }) => name)
  const names = columns.map((name) => `"${name}"`).join(', ')
  const insert = db.prepare(`INSERT INTO ${table} (${names}) VALUES (${columns.map(() => '?').join(', ')})`)
  return (row) => void insert.run(columns.map((name) => row[name] ?? null))
}

function nameOf(table: DigestedTable, row: Row): string {
  const [first = ''] = table.columns
  const value = row[first]
  return `${first} ${value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value)}`
}
