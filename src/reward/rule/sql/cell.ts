import type { SqlSemantics } from './semantics.ts'
import type { SqlValue } from './table.ts'

/** A value made comparable: equal keys are equal values; a number also has its magnitude for tolerance. */
export interface Cell {
  readonly key: string
  readonly number: number | null
  /** Of storage class INTEGER (or a text of digits): equal to another such cell exactly or not at all. */
  readonly whole: boolean
  /** A whole number of gold: no relative tolerance, because an id beyond 2^53 is near to many others. */
  readonly exact?: boolean
}

const decimal = /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*$/

/** A cell of gold: its whole numbers are met by an equal number only, or within an absolute tolerance. */
export function goldCellOf(value: SqlValue, semantics: Pick<SqlSemantics, 'nulls' | 'numberTexts'>): Cell {
  const cell = cellOf(value, semantics)
  return cell.whole ? { ...cell, exact: true } : cell
}

/** Applies the NULL and number policies. 1 and 1.0 get one key; whole numbers keep all their digits. */
export function cellOf(value: SqlValue, semantics: Pick<SqlSemantics, 'nulls' | 'numberTexts'>): Cell {
  if (value === null)
    return semantics.nulls === 'as_zero' ? numberCell(0n) : { key: 'null', number: null, whole: false }
  if (typeof value === 'bigint' || typeof value === 'number') return numberCell(value)
  if (typeof value === 'string') {
    if (semantics.numberTexts === 'as_numbers' && decimal.test(value)) return textNumber(value.trim())
    return { key: `t${value}`, number: null, whole: false }
  }
  return { key: `b${Buffer.from(value).toString('hex')}`, number: null, whole: false }
}

/** True for equal cells, and for numbers within tolerance, one of which is REAL. Symmetric. */
export function closeCells(a: Cell, b: Cell, tolerance: SqlSemantics['tolerance']): boolean {
  if (a.key === b.key) return true
  // Tolerance is for the noise of floating point: the ids 1000000000 and 1000000001 are near, and different.
  if (a.number === null || b.number === null || (a.whole && b.whole)) return false
  const larger = Math.max(Math.abs(a.number), Math.abs(b.number))
  // Infinity is near nothing else.
  const relative = a.exact === true || b.exact === true ? 0 : tolerance.relative
  const bound = Math.max(tolerance.absolute, relative * larger)
  return bound > 0 && Number.isFinite(larger) && Math.abs(a.number - b.number) <= bound
}

function numberCell(value: bigint | number): Cell {
  if (typeof value === 'bigint') return { key: `n${value}`, number: Number(value), whole: true }
  // NaN has no magnitude: it equals itself, as the engines that have it say, and is near nothing.
  if (Number.isNaN(value)) return { key: 'nan', number: null, whole: false }
  const whole = Number.isInteger(value)
  return { key: whole ? `n${BigInt(value)}` : `n${value}`, number: value, whole: false }
}

function textNumber(text: string): Cell {
  return /^[+-]?\d+$/.test(text) ? numberCell(BigInt(text.replace('+', ''))) : numberCell(Number(text))
}
