/** The name of the rule in manifests. */
export const advantageRule = 'grpo'

/** Added to the standard deviation, as slime and verl do. */
const epsilon = 1e-6

/**
 * Advantages of the members of one group, in their order: (reward - mean) / (sample standard deviation + 1e-6), 0 in a
 * group of one or of equal rewards (GRPO, arXiv 2402.03300 §4.1.2). A member without a number has none and moves nobody's.
 */
export function groupAdvantages(rewards: readonly (number | null)[]): readonly (number | null)[] {
  const numbers = rewards.filter((reward) => reward !== null)
  const mean = numbers.reduce((sum, reward) => sum + reward, 0) / numbers.length
  const squares = numbers.reduce((sum, reward) => sum + (reward - mean) ** 2, 0)
  const std = numbers.length < 2 ? 0 : Math.sqrt(squares / (numbers.length - 1))
  const isFlat = numbers.every((reward) => reward === numbers[0])
  return rewards.map((reward) => (reward === null ? null : isFlat ? 0 : (reward - mean) / (std + epsilon)))
}
