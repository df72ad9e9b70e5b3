import type { Hit } from '../corpus/index.ts'

/**
 * Reciprocal-rank fusion (Cormack, Clarke and Büttcher 2009): a passage scores the sum of `1 / (k + rank)` over the
 * rankings that have it, ranks from 1. Equal scores keep the order of the first ranking, then of the next.
 */
export function fuse(rankings: readonly (readonly Hit[])[], k: number, topk: number): readonly Hit[] {
  const found = new Map<string, Hit>()
  for (const ranking of rankings) {
    for (const [i, hit] of ranking.entries()) {
      const score = (found.get(hit.id)?.score ?? 0) + 1 / (k + i + 1)
      found.set(hit.id, { ...(found.get(hit.id) ?? hit), score })
    }
  }
  // The sort is stable, and a map keeps the order of insertion.
  return [...found.values()].toSorted((a, b) => b.score - a.score).slice(0, topk)
}
