import { stripVTControlCharacters } from 'node:util'
import type { Paint } from './colour.ts'

export interface Column {
  readonly title: string
  readonly align?: 'left' | 'right'
}

/**
 * A table of one line per row, columns as wide as their widest cell. Cells may carry colour. `columns` cuts lines to a
 * terminal's width; null leaves them whole.
 */
export function table(
  header: readonly Column[],
  rows: readonly (readonly string[])[],
  o: { readonly paint: Paint; readonly columns: number | null },
): string {
  const widths = header.map((column, index) =>
    Math.max(width(column.title), ...rows.map((row) => width(row[index] ?? ''))),
  )
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, index) => pad(cell, widths[index] ?? 0, header[index]?.align ?? 'left'))
      .join('  ')
      .trimEnd()
  const lines = [o.paint('dim', line(header.map((column) => column.title))), ...rows.map(line)]
  return lines.map((text) => cut(text, o.columns)).join('\n')
}

function pad(cell: string, to: number, align: 'left' | 'right'): string {
  const space = ' '.repeat(Math.max(0, to - width(cell)))
  return align === 'left' ? cell + space : space + cell
}

function width(text: string): number {
  return Array.from(stripVTControlCharacters(text)).length
}

/** Cuts plain lines only: an escape sequence must not be torn. */
function cut(text: string, columns: number | null): string {
  if (columns === null || width(text) <= columns || text !== stripVTControlCharacters(text)) return text
  return `${Array.from(text)
    .slice(0, Math.max(1, columns - 1))
    .join('')}…`
}
