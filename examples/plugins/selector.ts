/** A selector: of each group the best and the worst rollout. Listed under `selectors`, asked for with `export --select`. */
import { defineSelector } from 'paddock-rl/selector'

export default defineSelector({
  name: 'extremes',
  apiVersion: 1,
  version: '1.0.0',
  select: ({ rollouts }) => {
    const byReward = rollouts.toSorted((a, b) => (a.verdict?.reward ?? 0) - (b.verdict?.reward ?? 0))
    return byReward.filter((_, at) => at === 0 || at === byReward.length - 1).map(({ rollout }) => rollout.id)
  },
})
