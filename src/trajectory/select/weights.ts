import type { Row, SelectionQuery, WeightRule } from '../rows-contract.ts'

/** How much of a rollout's reward each of its rows carries; see {@link WeightRule}. */
export function rowWeights(rows: readonly Row[], rule: WeightRule): number[] {
  const tokens = rows.map((row) => row.mask.reduce((sum, value) => sum + value, 0))
  const training = tokens.filter((count) => count > 0).length
  switch (rule) {
    case 'full':
      return tokens.map((count) => (count === 0 ? 0 : 1))
    case '1/K':
      return tokens.map((count) => (count === 0 ? 0 : 1 / training))
    case 'per-token': {
      const total = tokens.reduce((sum, count) => sum + count, 0)
      return tokens.map((count) => (total === 0 ? 0 : count / total))
    }
    case 'first-owner': {
      const owner = tokens.findIndex((count) => count > 0)
      return tokens.map((_, index) => (index === owner ? 1 : 0))
    }
  }
}

/** The rule that a query comes to. */
export function weightRuleOf({ weightRule, oneRowPerRollout }: SelectionQuery): WeightRule {
  return weightRule ?? (oneRowPerRollout === 'split-advantage' ? '1/K' : 'full')
}
