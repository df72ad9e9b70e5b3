import { describe, expect, it } from 'vitest'
import type { RolloutSummary } from './contract.ts'
import { repeatsOf } from './repeats.ts'

/** Of a summary only what the statistics read. */
const rollout = (groupId: string, slot: number, reward: number | null, more: object = {}): RolloutSummary =>
  ({ groupId, slot, retried: false, taints: [], verdict: { reward }, ...more }) as unknown as RolloutSummary

describe('the repeats of a run', () => {
  it('are means over the same tasks, with their spread and the tasks that flip', () => {
    const found = repeatsOf([
      // In any order; a retried attempt does not count beside its last.
      rollout('a', 1, 0),
      rollout('a', 0, 0, { retried: true }),
      rollout('a', 0, 1),
      rollout('b', 0, 1),
      rollout('b', 1, 1),
      // One repeat of it says nothing: it is left out, whatever the other says.
      rollout('c', 0, 0),
      rollout('c', 1, null),
      rollout('d', 0, 0),
      rollout('d', 1, 1, { taints: ['engine_5xx'] }),
    ])
    expect(found).toEqual({ repeats: 2, tasks: 2, mean: 0.75, deviation: 0.25, lowest: 0.5, highest: 1, flips: 1 })
  })

  it('are none of a run without two', () => {
    expect(repeatsOf([])).toBeNull()
    expect(repeatsOf([rollout('a', 0, 1), rollout('b', 0, 0)])).toBeNull()
    expect(repeatsOf([rollout('a', 0, 1), rollout('a', 1, null)])).toBeNull()
  })
})
