import type { Id } from '../../core/index.ts'
import type { Recorder } from '../../trajectory/index.ts'
import type { LiveWeights } from './eval-run.ts'

/** Whether what one policy sampled is of more than one version, or of another than the one that rollouts were pinned to. */
export async function weightsChanged(
  recorder: Pick<Recorder, 'sessions' | 'session'>,
  rolloutIds: readonly Id[],
  { version, versions = {} }: LiveWeights,
): Promise<boolean> {
  /** Of each policy, by its name; '': there is one. */
  const labels = new Map<string, Set<string | null>>()
  const labelsOf = (policy: string): Set<string | null> => {
    const pinned = policy === '' ? version : Object.hasOwn(versions, policy) ? versions[policy] : null
    const found = labels.get(policy) ?? new Set(pinned == null ? [] : [pinned.label])
    labels.set(policy, found)
    return found
  }
  for (const rolloutId of rolloutIds) {
    for (const { id, role, policy: own } of await recorder.sessions({ rolloutId })) {
      if (role !== 'agent') continue
      const seen = labelsOf(own.name ?? '')
      const { segments } = await recorder.session(id, { bodies: [] })
      for (const { origin, policySpans } of segments) {
        if (origin !== 'sampled') continue
        for (const { policy, mixing } of policySpans) {
          if (mixing !== 'none') return true
          seen.add(policy.weightVersion)
        }
      }
      if (seen.size > 1) return true
    }
  }
  return false
}
