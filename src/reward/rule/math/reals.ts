import { Decimal } from './field.ts'

/** Where a set of real numbers begins or ends: before a number or behind it. */
export interface Cut {
  readonly at: Decimal
  readonly behind: boolean
}

/** Real numbers by their cuts, in order: the set goes from the first to the second, from the third to the fourth, and so on. */
export type Reals = readonly Cut[]

/** Which numbers of two sets stay. */
type Keeps = (inFirst: boolean, inSecond: boolean) => boolean
export const either: Keeps = (inFirst, inSecond) => inFirst || inSecond
export const both: Keeps = (inFirst, inSecond) => inFirst && inSecond
export const firstOnly: Keeps = (inFirst, inSecond) => inFirst && !inSecond

export const least = new Decimal(Number.NEGATIVE_INFINITY)
export const most = new Decimal(Number.POSITIVE_INFINITY)

/** The numbers between two; infinity is no number. */
export function interval(from: Decimal, to: Decimal, hasFrom: boolean, hasTo: boolean): Reals {
  return [
    { at: from, behind: !hasFrom || !from.isFinite() },
    { at: to, behind: hasTo && to.isFinite() },
  ]
}

export const allReals = interval(least, most, false, false)

export function merged(a: Reals, b: Reals, keeps: Keeps): Reals {
  const cuts = [...a.map((cut) => ({ ...cut, first: true })), ...b.map((cut) => ({ ...cut, first: false }))]
  const found: Cut[] = []
  let [inFirst, inSecond] = [false, false]
  for (const { at, behind, first } of cuts.toSorted(order)) {
    const was = keeps(inFirst, inSecond)
    if (first) inFirst = !inFirst
    else inSecond = !inSecond
    if (keeps(inFirst, inSecond) === was) continue
    const last = found.at(-1)
    // What begins and ends at one cut holds nothing.
    if (last?.at.eq(at) === true && last.behind === behind) found.pop()
    else found.push({ at, behind })
  }
  return found
}

function order(a: Cut, b: Cut): number {
  return a.at.cmp(b.at) || Number(a.behind) - Number(b.behind)
}
