import type { ExportRollout } from '../rows-contract.ts'

/** A row's part of its rollout's advantage: the advantage times the row's weight. Null without a reward. */
export function rowAdvantage({ advantage, rowWeights }: ExportRollout, row: number): number | null {
  // 0 times a negative number is -0, which no reader cares to see.
  return advantage === null ? null : advantage * (rowWeights[row] ?? 1) + 0
}
