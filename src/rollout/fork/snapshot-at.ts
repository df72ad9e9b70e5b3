import type { Id } from '../../core/index.ts'
import type { RecorderReader, SessionLog } from '../../trajectory/index.ts'

/** A box at a call: what it was kept as; null: nothing had been done in it, as no answer stands before the call. */
export interface Standing {
  readonly image: string | null
  /** What the box had beyond that, a line for each. */
  readonly without: readonly string[]
}

/**
 * The image that the box of an agent was kept as when it asked a call. Of a place that a fork shares with its parent the parent's
 * will do. Null: it was not kept.
 */
export async function snapshotAt(
  recorder: Pick<RecorderReader, 'session' | 'events'>,
  rolloutId: Id,
  { log, callId }: { readonly log: SessionLog; readonly callId: Id },
): Promise<Standing | null> {
  const at = log.calls.find(({ intent }) => intent.id === callId)
  if (at === undefined) return null
  const before = answeredBefore(log, callId).at(-1)
  if (before === undefined) return { image: null, without: [] }
  for (const event of await recorder.events({ rolloutId })) {
    if (event.kind !== 'snapshot' || event.callId !== before.intent.id) continue
    const { image, without = [] } = event
    if (event.request === at.intent.requestDigest) return { image, without }
  }
  const { forkedFrom } = log.session
  if (forkedFrom === null) return null
  const shared = log.events.find((event) => event.kind === 'replay' && event.callId === callId)
  const isFirstOwn = log.events.some((event) => event.kind === 'replay' && event.callId === before.intent.id)
  const there = shared?.kind === 'replay' ? shared.of : isFirstOwn ? forkedFrom.callId : null
  if (there === null) return null
  return inAncestors(recorder, forkedFrom.sessionId, there)
}

/** The answered calls of the conversation before a call of it. */
export function answeredBefore({ calls }: Pick<SessionLog, 'calls'>, callId: Id): SessionLog['calls'] {
  const at = calls.find(({ intent }) => intent.id === callId)
  return calls.filter(
    ({ intent, commit, superseded }) =>
      intent.callClass === 'main' &&
      intent.seq < (at?.intent.seq ?? 0) &&
      !superseded &&
      (commit?.choices.length ?? 0) > 0,
  )
}

/** A replayed call names the one that was sampled, which may be of the parent's parent. */
async function inAncestors(
  recorder: Pick<RecorderReader, 'session' | 'events'>,
  sessionId: Id,
  callId: Id,
): ReturnType<typeof snapshotAt> {
  const log = await recorder.session(sessionId, { bodies: [] })
  const { rolloutId, forkedFrom } = log.session
  const isHere = log.calls.some(({ intent }) => intent.id === callId)
  if (isHere && rolloutId !== null) return snapshotAt(recorder, rolloutId, { log, callId })
  return forkedFrom === null ? null : inAncestors(recorder, forkedFrom.sessionId, callId)
}
