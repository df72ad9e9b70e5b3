import { type Clock, type IdMaker, newId, systemClock } from '../core/index.ts'
import type { SandboxEventSink } from '../sandbox/index.ts'
import type { Recorder } from '../trajectory/index.ts'

/**
 * The sink that a sandbox provider is made with so that its boxes, and the commands that Paddock runs in them, stand in
 * the log of their rollout. What belongs to no rollout is left out.
 */
export function recordBoxEvents(
  recorder: Pick<Recorder, 'appendEvent'>,
  o: { readonly clock?: Clock; readonly newId?: IdMaker } = {},
): SandboxEventSink {
  const clock = o.clock ?? systemClock
  const makeId = o.newId ?? newId
  return (body, { rollout }) => {
    if (rollout === undefined) return
    const event = { ...body, id: makeId(), at: clock.now(), rolloutId: rollout, sessionId: null }
    // A store that fails is told by the rollout's own writes; a box has nobody to tell.
    recorder.appendEvent(event).catch(() => undefined)
  }
}
