import type { CallClass } from '../../core/index.ts'
import { type CallRecord, type Segment, type SessionRecord, wireFaultOf } from '../contract/index.ts'
import type { DropReason } from '../rows-contract.ts'
import type { Forest } from './forest.ts'

/** Classes that are trained unless an export chooses others. */
export const defaultTrainClasses: readonly CallClass[] = ['main', 'subagent']

/**
 * Why the answer of a call cannot end a row of its own, null when it can. An answer that a later request of the
 * session echoed was acted on, whatever became of its connection; so was one that reached the client only when it
 * came back for it.
 */
export function unusable(call: CallRecord): Extract<DropReason, 'superseded' | 'undelivered_sibling'> | null {
  if (call.delivery === 'echoed') return null
  if (call.superseded) return 'superseded'
  const outcome = call.commit?.outcome
  const fetchedLater = outcome?.kind === 'client_gone' && outcome.upstream === 'finished' && call.delivery === 'sent'
  return outcome?.kind === 'complete' || fetchedLater ? null : 'undelivered_sibling'
}

/** The bucket of all that a session samples whose calls are no part of the agent's work, whatever becomes of the rollout; null: it has none of its own. */
export function ownBucket({
  role,
  policy,
}: Pick<SessionRecord, 'role' | 'policy'>): Extract<
  DropReason,
  'probe' | 'judge' | 'user_simulator' | 'frozen_policy'
> | null {
  if (policy.trained === false) return 'frozen_policy'
  return role === 'probe' || role === 'judge' || role === 'user_simulator' ? role : null
}

/** A sampled segment that may end a row, or why it may not. */
export type Candidate =
  | { readonly kind: 'leaf'; readonly segment: Segment; readonly trained: boolean }
  | { readonly kind: 'dropped'; readonly segment: Segment; readonly reason: DropReason }

/** Judges each sampled segment of an agent's session; tails behind a stop cut never end a row and are left out. */
export function candidates(forest: Forest, trainClasses: readonly CallClass[], includeUntrained: boolean): Candidate[] {
  const judged: Candidate[] = []
  const goneOnFrom = new Set(forest.log.segments.map(({ parent }) => parent?.segmentId))
  for (const segment of forest.log.segments) {
    // The end of an imported thread: it ends a row, of which nothing trains.
    const { origin, choice } = segment
    if (origin === 'imported' && choice !== null && !goneOnFrom.has(segment.id))
      judged.push({ kind: 'leaf', segment, trained: false })
    if (segment.origin !== 'sampled' || segment.stopCut) continue
    const call = forest.callOf(segment)
    const { role } = forest.log.session
    const bucket = ownBucket(forest.log.session)
    if (role !== 'agent' || bucket !== null) {
      judged.push({ kind: 'dropped', segment, reason: bucket ?? 'role' })
      continue
    }
    const reason = call === null ? 'undelivered_sibling' : (unusable(call) ?? wireFaultOf(call.commit?.findings ?? []))
    if (reason !== null) {
      judged.push({ kind: 'dropped', segment, reason })
      continue
    }
    const trained = trainClasses.includes(call?.intent.callClass ?? 'other')
    if (trained || includeUntrained) judged.push({ kind: 'leaf', segment, trained })
    else judged.push({ kind: 'dropped', segment, reason: 'class' })
  }
  return judged
}
