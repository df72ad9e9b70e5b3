import { type Clock, systemClock } from '../core/index.ts'
import type { Store } from '../trajectory/index.ts'
import { isOutside } from './group/outside.ts'
import { isUnverified, type UnverifiedRollout } from './left.ts'
import { isRecording } from './recording.ts'

/** How far back is looked; an owner does this at each start, so only the newest runs can have any. */
const lookBackRuns = 50

/**
 * Ends, as `infra`, the rollouts whose agents a killed Paddock left before they were done. For the owner of a store, right
 * after opening it and before any run of its own. Recordings and rollouts of somebody outside stay open: whoever
 * does them goes on. What agents that were done left stays unverified.
 */
export async function endInterrupted(
  store: Pick<Store, 'catalogue'>,
  o: { readonly clock?: Clock } = {},
): Promise<{ readonly ended: number; readonly unverified: readonly UnverifiedRollout[] }> {
  const { catalogue } = store
  const now = (o.clock ?? systemClock).now()
  let ended = 0
  const unverified: UnverifiedRollout[] = []
  for (const run of await catalogue.runs(lookBackRuns)) {
    if (isRecording(run) || isOutside(run)) continue
    for (const rollout of await catalogue.rollouts({ runId: run.id })) {
      if (isUnverified(rollout)) unverified.push(rollout)
      else if (rollout.end === null) {
        await catalogue.endRollout(rollout.id, now, 'infra', 'Paddock was stopped before the rollout ended')
        ended += 1
      }
    }
  }
  return { ended, unverified }
}
