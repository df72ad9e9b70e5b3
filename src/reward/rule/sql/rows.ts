import { type Cell, closeCells } from './cell.ts'
import type { SqlSemantics } from './semantics.ts'

export type Row = readonly Cell[]
export type RowMode = 'set' | 'bag' | 'ordered'
type Tolerance = SqlSemantics['tolerance']

const maxMatched = 2000

/** Whether two lists of equally wide rows are equal in a mode. Symmetric in its two lists. */
export function equalRows(a: readonly Row[], b: readonly Row[], mode: RowMode, tolerance: Tolerance): boolean {
  switch (mode) {
    case 'ordered':
      return a.length === b.length && a.every((row, i) => closeRows(row, b[i] ?? [], tolerance))
    case 'bag':
      return a.length === b.length && equalBags(a, b, tolerance)
    case 'set':
      return covers(a, b, tolerance) && covers(b, a, tolerance)
  }
}

function closeRows(a: Row, b: Row, tolerance: Tolerance): boolean {
  return a.length === b.length && a.every((cell, i) => closeCells(cell, b[i] ?? cell, tolerance))
}

/** Every row of `b` is met by some row of `a`. */
function covers(a: readonly Row[], b: readonly Row[], tolerance: Tolerance): boolean {
  const exact = new Set(a.map(exactKey))
  const left = b.filter((row) => !exact.has(exactKey(row)))
  if (left.length === 0) return true
  if (isExact(tolerance)) return false
  const groups = Map.groupBy(a, looseKey)
  return left.every((row) => (groups.get(looseKey(row)) ?? []).some((other) => closeRows(row, other, tolerance)))
}

function equalBags(a: readonly Row[], b: readonly Row[], tolerance: Tolerance): boolean {
  const key = isExact(tolerance) ? exactKey : looseKey
  const groups = Map.groupBy(b, key)
  for (const [name, rows] of Map.groupBy(a, key)) {
    const others = groups.get(name)
    if (others === undefined || others.length !== rows.length) return false
    if (!isExact(tolerance) && !matchable(rows, others, tolerance)) return false
  }
  return true
}

/**
 * Whether rows that differ in numbers only can be paired one to one within tolerance. Sorting pairs them nearly always;
 * where it does not, each column alone tells most unequal lists, and a bipartite matching decides the rest.
 */
function matchable(a: readonly Row[], b: readonly Row[], tolerance: Tolerance): boolean {
  const [first, second] = [a.toSorted(byNumbers), b.toSorted(byNumbers)]
  if (first.every((row, i) => closeRows(row, second[i] ?? [], tolerance))) return true
  const width = first[0]?.length ?? 0
  for (let column = 0; column < width; column++) {
    const one = sortedColumn(a, column)
    const other = sortedColumn(b, column)
    // Whole numbers are equal or different whatever lies between them, so order does not pair them best.
    if ([...one, ...other].some((cell) => cell.whole)) continue
    if (!one.every((cell, i) => closeCells(cell, other[i] ?? cell, tolerance))) return false
  }
  return perfectMatching(a, b, tolerance)
}

/** Kuhn's augmenting paths. Larger lists that sorting could not pair count as different: the search is quadratic. */
function perfectMatching(a: readonly Row[], b: readonly Row[], tolerance: Tolerance): boolean {
  if (a.length > maxMatched) return false
  const near = a.map((row) => b.flatMap((other, i) => (closeRows(row, other, tolerance) ? [i] : [])))
  const owner = new Map<number, number>()
  const augment = (from: number, seen: Set<number>): boolean => {
    for (const to of near[from] ?? []) {
      if (seen.has(to)) continue
      seen.add(to)
      const before = owner.get(to)
      if (before === undefined || augment(before, seen)) {
        owner.set(to, from)
        return true
      }
    }
    return false
  }
  return a.every((_, from) => augment(from, new Set()))
}

function isExact({ absolute, relative }: Tolerance): boolean {
  return absolute === 0 && relative === 0
}

// Lengths stand before the keys, so that no two rows run together into one text.
function exactKey(row: Row): string {
  return row.map(({ key }) => `${key.length}:${key}`).join('')
}

function looseKey(row: Row): string {
  return row.map(({ key, number }) => (number === null ? `${key.length}:${key}` : '#')).join('')
}

function byNumbers(a: Row, b: Row): number {
  for (const [i, cell] of a.entries()) {
    const difference = compareNumbers(cell, b[i] ?? cell)
    if (difference !== 0) return difference
  }
  return 0
}

function compareNumbers(a: Cell, b: Cell): number {
  if (a.number === null || b.number === null) return 0
  if (a.number !== b.number) return a.number < b.number ? -1 : 1
  // Different whole numbers beyond 2^53 can have one magnitude.
  return a.key === b.key ? 0 : a.key < b.key ? -1 : 1
}

function sortedColumn(rows: readonly Row[], column: number): readonly Cell[] {
  return rows.flatMap((row) => row[column] ?? []).toSorted(compareNumbers)
}
