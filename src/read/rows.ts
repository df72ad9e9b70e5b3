import type { Id } from '../core/index.ts'
import { buildRows, type MaskReason, type RolloutView, type Row, type SessionLog } from '../trajectory/index.ts'

/** What became of a sampled segment in the rows that a trainer would get. */
export interface SegmentMask {
  readonly trained: boolean
  readonly reason: MaskReason | 'superseded' | null
}

/** Rows of a session as an export with default rules would make them; a session without a rollout stands for itself. */
export function rowsOf(log: SessionLog, rollout: RolloutView | null): readonly Row[] {
  return buildRows(log, {
    rolloutId: rollout?.id ?? log.session.id,
    groupId: rollout?.groupId ?? log.session.id,
    taskDigest: rollout?.taskDigest ?? '',
  }).rows
}

/** What becomes of each sampled segment: trained in one of the rows, or masked, and why. */
export function segmentMasks(log: SessionLog, rows: readonly Row[]): ReadonlyMap<Id, SegmentMask> {
  const masks = new Map<Id, SegmentMask>()
  const superseded = new Set(log.calls.filter((call) => call.superseded).map((call) => call.intent.id))
  for (const segment of log.segments) {
    if (segment.origin !== 'sampled') continue
    const gone = segment.callId !== null && superseded.has(segment.callId)
    masks.set(segment.id, { trained: false, reason: gone ? 'superseded' : null })
  }
  for (const segment of rows.flatMap((row) => row.segments)) {
    if (segment.origin !== 'sampled' || masks.get(segment.segmentId)?.trained === true) continue
    masks.set(segment.segmentId, { trained: segment.trained, reason: segment.maskReason })
  }
  return masks
}
