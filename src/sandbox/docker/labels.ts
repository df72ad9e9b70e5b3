import type { BoxLabels } from '../contract/index.ts'
import { thisOwner } from '../../core/index.ts'

/** On everything that Paddock makes in the daemon. */
export const markLabel = 'paddock'
/** On everything that must not outlive its maker; images and bundles do not carry it. */
export const ownerLabel = 'paddock.owner'

/** On boxes, relays and snapshots that go with their provider: which one of its process. */
export const providerLabel = 'paddock.provider'

/** On images that snapshots are: how many lie on each other, and what the lowest of them was started from. */
export const depthLabel = 'paddock.depth'
export const parentLabel = 'paddock.parent'
/** On the same: what the image that they began with says of its commands. */
export const saysLabel = 'paddock.says'

/** On images that are kept: when (milliseconds since the epoch; the daemon counts seconds), the bytes that each added, the call that it was taken after. */
export const keptAtLabel = 'paddock.kept-at'
export const bytesLabel = 'paddock.bytes'
export const callLabel = 'paddock.call'
export const runLabel = 'paddock.run'
export const rolloutLabel = 'paddock.rollout'

export type ContainerKind = 'box' | 'relay' | 'work'

export function containerLabels(kind: ContainerKind, about?: BoxLabels): Record<string, string> {
  return {
    [markLabel]: kind,
    [ownerLabel]: thisOwner(),
    ...(about === undefined ? {} : { 'paddock.role': about.role }),
    ...(about?.run === undefined ? {} : { [runLabel]: about.run }),
    ...(about?.rollout === undefined ? {} : { [rolloutLabel]: about.rollout }),
  }
}
