import { type Clock, systemClock } from '../core/index.ts'
import type { Store } from '../trajectory/index.ts'
import { isOutside } from './group/outside.ts'
import { isUnverified, type UnverifiedRollout } from './work.ts'
import { isRecording } from './recording.ts'

/** How far back is looked, beyond runs that are not at their end: those that ended may have left verifications. */
const lookBackRuns = 50

const beforeEnd = 'before the rollout ended'

/**
 * Ends, as `infra`, the rollouts whose agents a killed Paddock left before they were done. For the owner of a store, right
 * after opening it and before any run of its own. Recordings and rollouts of somebody outside stay open: whoever
 * does them goes on. What agents that were done left stays unverified.
 */
export async function endInterrupted(
  store: Pick<Store, 'catalogue'> & { readonly recorder: Pick<Store['recorder'], 'events'> },
  o: { readonly clock?: Clock } = {},
): Promise<{ readonly ended: number; readonly unverified: readonly UnverifiedRollout[] }> {
  const { catalogue, recorder } = store
  const now = (o.clock ?? systemClock).now()
  let ended = 0
  const unverified: UnverifiedRollout[] = []
  const newest = [...(await catalogue.runs(lookBackRuns)), ...(await catalogue.unfinishedRuns('all'))]
  for (const run of new Map(newest.map((one) => [one.id, one])).values()) {
    if (isRecording(run) || isOutside(run) || (await catalogue.elsewhere(run.id)) !== null) continue
    for (const rollout of await catalogue.rollouts({ runId: run.id })) {
      if (isUnverified(rollout)) unverified.push(rollout)
      else if (rollout.end === null) {
        const events = await recorder.events({ rolloutId: rollout.id })
        // Cut off while it was ingested: the same hand-in completes it, and an end of ours would stand in its way.
        if (events.some((event) => event.kind === 'handed_in')) continue
        const last = events.findLast((event) => event.kind === 'shelve')
        const how = last?.kind === 'shelve' && last.phase === 'shelved' ? 'while the rollout was shelved' : beforeEnd
        await catalogue.endRollout(rollout.id, now, 'infra', `Paddock was stopped ${how}`)
        ended += 1
      }
    }
  }
  return { ended, unverified }
}
