/** Rows of a CSV text (RFC 4180: quoted fields, doubled quotes, line feeds within quotes); the head is the first row. */
export function parseCsv(text: string): readonly (readonly string[])[] {
  const rows: string[][] = []
  let row: string[] = []
  const field = /(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r\n|\n|\r|$)/gy
  while (field.lastIndex < text.length) {
    const found = field.exec(text)
    if (found === null) throw new SyntaxError(`a quote is not closed behind row ${rows.length}`)
    const [, inQuotes, bare, end] = found
    row.push(inQuotes === undefined ? (bare ?? '') : inQuotes.replaceAll('""', '"'))
    if (end === ',') continue
    rows.push(row)
    row = []
  }
  return rows
}

/** A table as a query that gives it: empty fields are NULL, numbers are numbers, the rest is text. `columns`: all or some. */
export function valuesQuery(rows: readonly (readonly string[])[], columns: readonly number[] | null): string {
  const [head = [], ...body] = rows
  const kept = columns ?? head.map((_, i) => i)
  if (body.length === 0) return 'SELECT NULL WHERE 0'
  const tuples = body.map((row) => `(${kept.map((i) => literalOf(row[i] ?? '')).join(', ')})`)
  return `VALUES ${tuples.join(', ')}`
}

function literalOf(field: string): string {
  if (field === '') return 'NULL'
  if (/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(field)) return field
  return `'${field.replaceAll("'", "''")}'`
}
