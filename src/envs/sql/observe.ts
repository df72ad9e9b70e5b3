import type { ResultTable, SqlValue } from '../../reward/index.ts'
import type { RunnerAnswer, RunnerFailure } from './wire.ts'

/** Bounds of what a model reads of one result. */
export const observationLimits = { rows: 50, cell: 200, characters: 9000 }

type Ok<Op extends 'query' | 'script' | 'tables' | 'describe' | 'sample'> = Extract<RunnerAnswer<Op>, { status: 'ok' }>

/**
 * A result as text: typed (values stand as SQL literals), the same for the same rows, and cut only with a notice that
 * says what was left out.
 */
export function resultText(result: ResultTable & { readonly more: boolean }): string {
  const names = result.columns.map((name) => cutTo(name, observationLimits.cell)).join(' | ')
  const head = cutTo(names, observationLimits.characters / 2)
  const lines = result.rows.slice(0, observationLimits.rows).map((row) => row.map(literal).join(' | '))
  const shown: string[] = []
  let size = head.length
  for (const line of lines) {
    size += line.length + 1
    if (size > observationLimits.characters) break
    shown.push(line)
  }
  const all = result.more ? `more than ${result.rows.length}` : String(result.rows.length)
  const cut = shown.length < result.rows.length || result.more
  const notice = cut ? `[${shown.length} of ${all} rows shown; aggregate or use LIMIT to see less]` : `[${all} rows]`
  return [head, ...shown, notice].join('\n')
}

// An unnamed column has its whole expression as a name.
function cutTo(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text
}

/** A value as a literal of SQL, long ones cut with their length. */
export function literal(value: SqlValue): string {
  if (value === null) return 'NULL'
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'number') return realLiteral(value)
  if (typeof value === 'string') {
    const { cell } = observationLimits
    const quoted = `'${value.slice(0, cell).replaceAll("'", "''")}'`
    return value.length > cell ? `${quoted}…[${value.length} characters]` : quoted
  }
  const hex = Buffer.from(value.subarray(0, 32)).toString('hex')
  return value.length > 32 ? `x'${hex}'…[${value.length} bytes]` : `x'${hex}'`
}

// A REAL shows its point, so that 1.0 and 1 stay apart; 9e999 is how SQL writes infinity.
function realLiteral(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? '9e999' : '-9e999'
  const text = String(value)
  return /[.e]/.test(text) ? text : `${text}.0`
}

/** Tables and views with their sizes. */
export function tablesText({ tables }: Ok<'tables'>): string {
  if (tables.length === 0) return '[no tables]'
  const lines = tables.map(({ name, kind, rows }) => `${name} (${kind}, ${rows} rows)`)
  return cutTo(lines.join('\n'), observationLimits.characters)
}

/** Columns, keys and indexes of a table. */
export function describeText({ name, columns, foreignKeys, indexes }: Ok<'describe'>): string {
  const lines = columns.map((column) => {
    const facts = [
      column.type,
      column.key > 0 ? 'PRIMARY KEY' : '',
      column.notNull ? 'NOT NULL' : '',
      column.default === null ? '' : `DEFAULT ${column.default}`,
    ]
    return `  ${column.name} ${facts.filter((fact) => fact !== '').join(' ')}`.trimEnd()
  })
  const keys = foreignKeys.map(({ from, table, to }) => `  ${from} REFERENCES ${table}${to === null ? '' : `(${to})`}`)
  const covered = indexes.map(
    (index) =>
      `  ${index.unique ? 'UNIQUE ' : ''}INDEX (${index.columns.map((column) => column ?? 'expression').join(', ')})`,
  )
  return cutTo([name, ...lines, ...keys, ...covered].join('\n'), observationLimits.characters)
}

/** Why a statement gave nothing, in words that do not tell where files lie. */
export function failureText(failure: RunnerFailure): string {
  const names: Record<RunnerFailure['kind'], string> = {
    refused: 'not allowed',
    sql: 'SQL error',
    timeout: 'time limit',
    memory: 'memory limit',
    too_large: 'too large',
    broken: 'failed',
  }
  return `[${names[failure.kind]}: ${failure.message}]`
}
