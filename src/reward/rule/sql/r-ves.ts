/**
 * R-VES of BIRD's mini-dev (`bird-bench/mini_dev` at bb37377, `evaluation/evaluation_ves.py`): the gold's time over the
 * submission's, run by run, without the outliers beyond three standard deviations; the mean falls into a tier, and a query
 * counts with the square root of its tier. Higher is faster; a query that is as fast as gold counts 1.
 */
const tiers = [
  { from: 2, value: 1.25 },
  { from: 1, value: 1 },
  { from: 0.5, value: 0.75 },
  { from: 0.25, value: 0.5 },
  { from: 0, value: 0.25 },
] as const

/**
 * What a ratio may miss of a threshold and still reach it. R-VES has none, so that by its tiers a query equal to gold falls
 * to one or the other side of 1 by noise.
 */
const slack = 0.1

export interface RVes {
  /** Mean of what is left of the ratios. */
  readonly timeRatio: number
  /** Square root of the tier: 0.5 up to 1.118. */
  readonly score: number
}

/** Of the ratios gold time / submission time of several runs. Null without a ratio, or where one is no positive number. */
export function rVes(ratios: readonly number[]): RVes | null {
  if (ratios.length === 0 || ratios.some((ratio) => !Number.isFinite(ratio) || ratio <= 0)) return null
  const middle = mean(ratios)
  const deviation = Math.sqrt(mean(ratios.map((ratio) => (ratio - middle) ** 2)))
  // Where all are equal (numerically) nothing is beyond anything; the published code divides by zero there.
  const kept = ratios.filter((ratio) => Math.abs(ratio - middle) <= 3 * deviation)
  const timeRatio = mean(kept.length === 0 ? ratios : kept)
  const tier = tiers.find(({ from }) => timeRatio >= from * (1 - slack))?.value ?? 0.25
  return { timeRatio, score: Math.sqrt(tier) }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
