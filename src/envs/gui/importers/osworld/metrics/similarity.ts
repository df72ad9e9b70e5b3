/**
 * Ratio of two sequences as rapidfuzz's `fuzz.ratio` has it (normalised indel similarity): twice the longest common
 * subsequence over both lengths; 1 for two empty ones.
 */
export function indelRatio(a: string, b: string): number {
  const [left, right] = [Array.from(a), Array.from(b)]
  const total = left.length + right.length
  if (total === 0) return 1
  let row = new Uint32Array(right.length + 1)
  for (const sign of left) {
    const next = new Uint32Array(right.length + 1)
    for (let at = 0; at < right.length; at += 1) {
      next[at + 1] = sign === right[at] ? (row[at] ?? 0) + 1 : Math.max(row[at + 1] ?? 0, next[at] ?? 0)
    }
    row = next
  }
  return (2 * (row[right.length] ?? 0)) / total
}

/**
 * Ratio of two lists as Python's `difflib.SequenceMatcher.ratio` has it (Ratcliff and Obershelp: the longest common run,
 * then what is left and right of it), with its heuristic for lists of 200 and more, where an element that makes up more
 * than a hundredth of the second list begins no run.
 */
export function sequenceRatio(a: readonly string[], b: readonly string[]): number {
  if (a.length + b.length === 0) return 1
  const places = new Map<string, number[]>()
  for (const [at, element] of b.entries()) places.set(element, [...(places.get(element) ?? []), at])
  if (b.length >= 200) {
    const popular = Math.floor(b.length / 100) + 1
    for (const [element, at] of places) if (at.length > popular) places.delete(element)
  }
  let matched = 0
  const open: [number, number, number, number][] = [[0, a.length, 0, b.length]]
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    const [fromA, toA, fromB, toB] = part
    const run = longestRun(a, b, places, part)
    if (run.length === 0) continue
    matched += run.length
    open.push([fromA, run.a, fromB, run.b], [run.a + run.length, toA, run.b + run.length, toB])
  }
  return (2 * matched) / (a.length + b.length)
}

function longestRun(
  a: readonly string[],
  b: readonly string[],
  places: ReadonlyMap<string, readonly number[]>,
  [fromA, toA, fromB, toB]: readonly [number, number, number, number],
) {
  let best = { a: fromA, b: fromB, length: 0 }
  let ending = new Map<number, number>()
  for (let at = fromA; at < toA; at += 1) {
    const next = new Map<number, number>()
    for (const place of places.get(a[at] ?? '') ?? []) {
      if (place < fromB || place >= toB) continue
      const length = (ending.get(place - 1) ?? 0) + 1
      next.set(place, length)
      if (length > best.length) best = { a: at - length + 1, b: place - length + 1, length }
    }
    ending = next
  }
  // What begins no run may still lengthen one.
  let { a: left, b: right, length } = best
  while (left > fromA && right > fromB && a[left - 1] === b[right - 1]) {
    left -= 1
    right -= 1
    length += 1
  }
  while (left + length < toA && right + length < toB && a[left + length] === b[right + length]) length += 1
  return { a: left, b: right, length }
}
