import { type Clock, type Id, type IdMaker, newId, systemClock } from '../core/index.ts'
import type { Store } from '../trajectory/index.ts'

/** A label that somebody gives a recorded rollout. */
export interface LateLabel {
  readonly name: string
  readonly value: string
  /** Name of the token under which it is given. */
  readonly token: string
}

/**
 * Labels a rollout; the last label of a name stands, all are on record in its log with who gave them. Throws `NOT_FOUND` for an unknown
 * rollout.
 */
export async function giveLabel(
  store: { readonly catalogue: Store['catalogue']; readonly recorder: Pick<Store['recorder'], 'appendEvent'> },
  rolloutId: Id,
  { name, value, token }: LateLabel,
  o: { readonly clock?: Clock; readonly newId?: IdMaker } = {},
): Promise<void> {
  const { id } = await store.catalogue.rollout(rolloutId)
  const at = (o.clock ?? systemClock).now()
  // Who says it stands before it counts.
  await store.recorder.appendEvent({
    id: (o.newId ?? newId)(),
    at,
    rolloutId: id,
    sessionId: null,
    kind: 'label',
    name,
    value,
    token,
  })
  await store.catalogue.label(id, name, value)
}
