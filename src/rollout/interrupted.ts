import { type Clock, systemClock } from '../core/index.ts'
import type { Store } from '../trajectory/index.ts'
import { isOutside } from './group/outside.ts'
import { isRecording } from './recording.ts'

/** How far back is looked; an owner does this at each start, so only the newest runs can have any. */
const lookBackRuns = 50

/**
 * Ends, as `infra`, the rollouts that a killed Paddock left without an end. For the owner of a store, right after opening
 * it and before any run of its own. Recordings and rollouts of somebody outside stay open: whoever does them goes on. Resolves with how many
 * there were.
 */
export async function endInterrupted(
  store: Pick<Store, 'catalogue'>,
  o: { readonly clock?: Clock } = {},
): Promise<number> {
  const { catalogue } = store
  const now = (o.clock ?? systemClock).now()
  let count = 0
  for (const run of await catalogue.runs(lookBackRuns)) {
    if (isRecording(run) || isOutside(run)) continue
    for (const rollout of await catalogue.rollouts({ runId: run.id })) {
      if (rollout.end !== null) continue
      await catalogue.endRollout(rollout.id, now, 'infra', 'Paddock was stopped before the rollout ended')
      count += 1
    }
  }
  return count
}
