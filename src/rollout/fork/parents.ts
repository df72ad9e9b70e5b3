import type { Id } from '../../core/index.ts'
import type { RecorderReader } from '../../trajectory/index.ts'

/** The rollouts whose records one needs that goes on from a rollout, the oldest first, that one last. */
export async function forkParents(
  recorder: Pick<RecorderReader, 'session' | 'sessions'>,
  rolloutId: Id,
): Promise<readonly Id[]> {
  const found = new Set([rolloutId])
  // What is added on the way is looked at too.
  for (const id of found) {
    for (const { forkedFrom } of await recorder.sessions({ rolloutId: id })) {
      if (forkedFrom === null) continue
      const { session } = await recorder.session(forkedFrom.sessionId, { bodies: [] })
      if (session.rolloutId === null || session.rolloutId === id) continue
      found.delete(session.rolloutId)
      found.add(session.rolloutId)
    }
  }
  return [...found].toReversed()
}
