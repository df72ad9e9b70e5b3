/**
 * Rows that carry a digest of themselves: CRC-32 over all their columns, so that a changed bit is found wherever a row is
 * read. What such a table holds is told by a list of its columns; every column of the list is covered.
 */
import { crc32 } from 'node:zlib'
import { PaddockError } from '../../core/index.ts'
import type { Statements } from './statements.ts'

/** A table whose rows have a column `digest` over `columns`. */
export interface DigestedTable<Column extends string = string> {
  readonly name: string
  readonly columns: readonly Column[]
}

/** What may stand in a column. */
export type ColumnValue = string | number | Uint8Array | null

/** Kinds of values, so that no two rows have the same bytes. */
const kinds = { nothing: 0, number: 1, text: 2, bytes: 3 } as const

/** Small values are put together here before they are digested; longer ones are digested where they are. */
const scratch = Buffer.allocUnsafeSlow(2048)
const shortBytes = 256

/** CRC-32 of values with their kinds and lengths, as a signed number: what SQLite stores in four bytes. */
export function rowDigest(values: readonly ColumnValue[]): number {
  let crc = 0
  let at = 0
  for (const value of values) {
    if (at > scratch.length - shortBytes - 16) {
      crc = crc32(scratch.subarray(0, at), crc)
      at = 0
    }
    if (value === null) scratch[at++] = kinds.nothing
    else if (typeof value === 'number') {
      scratch[at++] = kinds.number
      at = scratch.writeDoubleLE(value, at)
    } else if (typeof value === 'string') {
      scratch[at++] = kinds.text
      const length = value.length < shortBytes / 3 ? scratch.write(value, at + 4) : Buffer.byteLength(value)
      at = scratch.writeUInt32LE(length, at)
      if (value.length < shortBytes / 3) at += length
      else {
        crc = crc32(value, crc32(scratch.subarray(0, at), crc))
        at = 0
      }
    } else {
      scratch[at++] = kinds.bytes
      at = scratch.writeUInt32LE(value.byteLength, at)
      if (value.byteLength <= shortBytes) {
        scratch.set(value, at)
        at += value.byteLength
      } else {
        crc = crc32(value, crc32(scratch.subarray(0, at), crc))
        at = 0
      }
    }
  }
  return crc32(scratch.subarray(0, at), crc) | 0
}

const link = Buffer.allocUnsafeSlow(4)

/** The head of a chain of digests behind one more. */
export function chained(head: number, digest: number): number {
  link.writeInt32LE(digest)
  return crc32(link, head >>> 0) | 0
}

/** The text that inserts a row: its columns, then `more`, then its digest. */
export function insertOf(table: DigestedTable, more: readonly string[] = [], conflict = ''): string {
  const columns = [...table.columns, ...more, 'digest']
  return `INSERT INTO ${quoted(table.name)} (${columns.map(quoted).join(', ')}) VALUES (${columns.map(() => '?').join(', ')}) ${conflict}`
}

/** The text that reads whole rows; `rest` begins behind the name of the table. */
export function selectOf(table: DigestedTable, rest: string, more: readonly string[] = []): string {
  return `SELECT ${[...table.columns, ...more, 'digest'].map(quoted).join(', ')} FROM ${quoted(table.name)} ${rest}`
}

/** True where a row has its digest. */
export function hasDigest(table: DigestedTable, row: object): boolean {
  const values = row as Readonly<Record<string, ColumnValue>>
  return rowDigest(table.columns.map((column) => values[column] ?? null)) === values['digest']
}

/** The row, whose digest is checked. Throws `STORE_CORRUPT`. */
export function whole<Row extends object>(table: DigestedTable, row: Row): Row {
  if (hasDigest(table, row)) return row
  throw new PaddockError('STORE_CORRUPT', `a row of ${table.name} does not have its digest: ${keyOf(table, row)}`)
}

/** All rows of a selection, whose digests are checked. Throws `STORE_CORRUPT`. */
export function wholeRows<Row extends object>(
  statements: Statements,
  table: DigestedTable,
  rest: string,
  ...values: readonly unknown[]
): readonly Row[] {
  return statements.all<Row>(selectOf(table, rest), ...values).map((row) => whole(table, row))
}

/** What names a row to people: its first column. */
function keyOf(table: DigestedTable, row: object): string {
  const [first = ''] = table.columns
  const value = (row as Readonly<Record<string, unknown>>)[first]
  return `${first} ${value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value)}`
}

function quoted(name: string): string {
  return `"${name}"`
}
