import type { Row, WeightRule } from '../rows-contract.ts'

/** How much of a rollout's reward each of its rows carries; see {@link WeightRule}. */
export function rowWeights(rows: readonly Row[], rule: WeightRule): number[] {
  switch (rule) {
    case 'full':
      return rows.map(() => 1)
    case '1/K':
      return rows.map(() => 1 / rows.length)
    case 'per-token': {
      const tokens = rows.map((row) => row.mask.reduce((sum, value) => sum + value, 0))
      const total = tokens.reduce((sum, count) => sum + count, 0)
      return tokens.map((count) => (total === 0 ? 0 : count / total))
    }
    case 'first-owner': {
      const owner = rows.findIndex((row) => row.mask.includes(1))
      return rows.map((_, index) => (index === owner ? 1 : 0))
    }
  }
}
