import { type Id, newId } from '../../core/index.ts'
import type { ForkFrom, SessionLog, Store } from '../../trajectory/index.ts'
import { pastOf } from './past.ts'

/** Of a rollout whose first own prompt is not the one that its parent's engine read. */
const promptLabel = 'fork.prompt'

/**
 * Compares what the engine read at the fork with what it read there for the parent, id by id, and tells where that differs: by the
 * event `replay` with the phase `prompt_differs` and by a label. Nothing where one of the two is not known.
 */
export async function tellPrompt(
  { recorder, catalogue }: Pick<Store, 'recorder' | 'catalogue'>,
  { fork, sessionId, at }: { readonly fork: ForkFrom; readonly sessionId: Id; readonly at: number },
): Promise<void> {
  const child = await recorder.session(sessionId, { bodies: [] })
  const replayed = new Set(child.events.flatMap((event) => (event.kind === 'replay' ? [event.callId] : [])))
  if (!child.events.some((event) => event.kind === 'replay' && event.phase === 'arrived')) return
  const first = child.calls.find(({ intent }) => intent.callClass === 'main' && !replayed.has(intent.id))
  const { log } = await pastOf(recorder, fork)
  const parents = log.calls.find(({ intent }) => intent.id === fork.callId)
  const [now, then] = [promptIds(child, first), promptIds(log, parents)]
  if (now === null || then === null || first === undefined) return
  const place = firstDifference(now, then)
  if (place === null) return
  const detail = `from token ${place} on: ${then.length} tokens then, ${now.length} now`
  const { rolloutId } = child.session
  const about = { id: newId(), at, rolloutId, sessionId, callId: first.intent.id, of: fork.callId }
  await recorder.appendEvent({ ...about, kind: 'replay', phase: 'prompt_differs', detail })
  if (rolloutId !== null) await catalogue.label(rolloutId, promptLabel, 'differs')
}

function promptIds({ segments }: SessionLog, call: SessionLog['calls'][number] | undefined): Int32Array | null {
  let leaf = call?.commit?.promptLeaf ?? null
  if (leaf === null) return null
  const known = new Map(segments.map((segment) => [segment.id, segment]))
  const parts: Int32Array[] = []
  let until: number | null = null
  while (leaf !== null) {
    const segment = known.get(leaf)
    if (segment === undefined) return null
    parts.unshift(until === null ? segment.tokens : segment.tokens.subarray(0, until))
    until = segment.parent?.offset ?? null
    leaf = segment.parent?.segmentId ?? null
  }
  return Int32Array.from(parts.flatMap((part) => [...part]))
}

function firstDifference(a: Int32Array, b: Int32Array): number | null {
  if (a.length !== b.length) return firstAmong(a, b) ?? Math.min(a.length, b.length)
  return firstAmong(a, b)
}

function firstAmong(a: Int32Array, b: Int32Array): number | null {
  for (let at = 0; at < Math.min(a.length, b.length); at += 1) if (a[at] !== b[at]) return at
  return null
}
