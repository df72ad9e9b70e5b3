import type { VersionSpan } from '../engines/token-engine.ts'
import { type SeenWeights, versionUnder } from '../upstream.ts'

/**
 * Which weights sampled tokens `[start, end)` of an answer, one of its legs: as the engine told (`told` counts from the
 * leg's own first token), else as was seen around it. Null where nobody knows.
 */
export function spansOfLeg(
  told: readonly VersionSpan[],
  seen: SeenWeights,
  start: number,
  end: number,
): readonly VersionSpan[] | null {
  if (end === start) return []
  const atStart = seen.staleCache ? 'kv_mixed' : 'none'
  const adapter = seen.adapter?.name ?? null
  const covered = told.reduce((at, span) => (span.start === at ? span.end : Number.NaN), 0)
  if (told.length > 0 && covered === end - start) {
    return told.map((span, index) => ({
      version: versionUnder(seen.adapter, span.version),
      adapter,
      start: start + span.start,
      end: start + span.end,
      // Later spans of a leg go on with the keys and values of the old weights, unless they were dropped.
      mixing: index > 0 && !seen.recomputed ? 'kv_mixed' : atStart,
    }))
  }
  if (seen.after === null) return null
  return [{ version: seen.after, adapter, start, end, mixing: seen.before === seen.after ? atStart : 'mixed' }]
}

/** Neighbours that say the same become one. */
export function joinedSpans(spans: readonly VersionSpan[]): readonly VersionSpan[] {
  const joined: VersionSpan[] = []
  for (const span of spans) {
    const last = joined.at(-1)
    const isSame = last?.version === span.version && last.adapter === span.adapter && last.mixing === span.mixing
    if (last !== undefined && isSame && span.mixing !== 'mixed') {
      joined[joined.length - 1] = { ...last, end: span.end }
    } else joined.push(span)
  }
  return joined
}
