/**
 * Entries as they were written before schema 4, whose owner died before they were ingested: the segments of a commit stood
 * in its head.
 */
import type { Segment } from '../contract/index.ts'
import type { ReadLogEntry } from './entries.ts'
import { type ListedSegment, packSegmentList } from './segment-list.ts'

/** The head of a commit then. Its parts: outcome (JSON), marks, reply, columns. */
export interface OldCommitHead {
  readonly op: 'commitCall'
  readonly id: string
  readonly endedAt: number
  readonly segments: readonly (ListedSegment & Pick<Segment, 'choice' | 'parent'>)[]
}

/** The entry as it would be written today. */
export function ofToday(entry: {
  readonly head: ReadLogEntry['head'] | OldCommitHead
  readonly parts: ReadLogEntry['parts']
}): ReadLogEntry {
  const { head, parts } = entry
  if (head.op !== 'commitCall') return { head, parts }
  const [json, ...rest] = parts
  // Written by the recorder of then and by nothing else.
  const stored = JSON.parse(Buffer.from(json ?? []).toString()) as { readonly segments: readonly object[] }
  const segments = stored.segments.map((facts, place) => {
    const { choice, parent } = head.segments[place] ?? {}
    return { ...facts, choice, parent: parent == null ? null : [parent.segmentId, parent.offset] }
  })
  return {
    head: { op: 'endCall', id: head.id, endedAt: head.endedAt },
    parts: [packSegmentList(head.segments), Buffer.from(JSON.stringify({ ...stored, segments })), ...rest],
  }
}
