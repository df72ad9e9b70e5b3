import { type Clock, systemClock } from '../core/index.ts'
import type { Store } from '../trajectory/index.ts'
import { isOutside } from './group/outside.ts'
import { isUnverified, type UnverifiedRollout } from './left.ts'
import { isRecording } from './recording.ts'

/** How far back is looked, beyond runs that are not at their end: those that ended may have left verifications. */
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
  const newest = [...(await catalogue.runs(lookBackRuns)), ...(await catalogue.unfinishedRuns('all'))]
  for (const run of new Map(newest.map((one) => [one.id, one])).values()) {
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
