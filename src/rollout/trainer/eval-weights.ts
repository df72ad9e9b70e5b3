import type { Id } from '../../core/index.ts'
import type { Recorder } from '../../trajectory/index.ts'
import type { EvalVersion } from './eval-run.ts'

/** Whether rollouts were sampled by more than one version, or by another than the one they were pinned to. */
export async function weightsChanged(
  recorder: Pick<Recorder, 'sessions' | 'session'>,
  rolloutIds: readonly Id[],
  pinned: EvalVersion | null,
): Promise<boolean> {
  const labels = new Set<string | null>(pinned === null ? [] : [pinned.label])
  for (const rolloutId of rolloutIds) {
    for (const { id, role } of await recorder.sessions({ rolloutId })) {
      if (role !== 'agent') continue
      const { segments } = await recorder.session(id, { bodies: [] })
      for (const { origin, policySpans } of segments) {
        if (origin !== 'sampled') continue
        for (const { policy, mixing } of policySpans) {
          if (mixing !== 'none') return true
          labels.add(policy.weightVersion)
        }
      }
      if (labels.size > 1) return true
    }
  }
  return false
}
