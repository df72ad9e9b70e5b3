import type { Id, Task, Verdict } from '../core/index.ts'
import { unscored, type VerdictDraft } from '../reward/index.ts'
import type { RecorderReader, RolloutWork } from '../trajectory/index.ts'
import type { StageContext } from './attempt-context.ts'
import { audited } from './audit.ts'
import { verdictOf } from './verify.ts'

/**
 * Ends a rollout whose agent was done: its verdict, then its end, which is written last. Null: nothing was verified.
 * Resolves with the verdict as it is stored. Throws `STORE_*`.
 */
export async function finish(
  context: StageContext,
  task: Task,
  work: Pick<RolloutWork, 'end' | 'detail' | 'fault' | 'artifacts'>,
  draft: VerdictDraft | null,
): Promise<Verdict | null> {
  const { log } = context
  const { catalogue } = context.run.store
  // What was stored is named also where the verifier did not come to it: `rescore` starts from there.
  const kept = draft === null || draft.artifacts.length > 0 ? draft : { ...draft, artifacts: work.artifacts }
  const named = kept === null ? null : await ofItsPolicies(context.run.store.recorder, context.log.rolloutId, kept)
  const verdict = named === null ? null : await audited(context, task, verdictOf(context, named))
  if (verdict !== null) {
    await catalogue.appendVerdict(verdict)
    log.verdict(verdict)
  }
  await end(context, work)
  return verdict
}

/**
 * A draft that gives a number to a policy without a session in the rollout is a mistake of its verifier, and no number. Where there is one policy,
 * without a name, the number is its.
 */
export async function ofItsPolicies(
  recorder: Pick<RecorderReader, 'sessions'>,
  rolloutId: Id,
  draft: VerdictDraft,
): Promise<VerdictDraft> {
  if (draft.reward === null || draft.byPolicy === undefined) return draft
  const { byPolicy, ...shared } = draft
  const sessions = await recorder.sessions({ rolloutId })
  const known = new Set(sessions.map(({ policy }) => policy.name ?? null))
  if (known.size === 1 && known.has(null)) return shared
  const unknown = Object.keys(byPolicy).find((name) => !known.has(name))
  if (unknown === undefined) return draft
  return unscored(
    'unscorable',
    `The verifier gives a number to the policy ${unknown}, which had no part in it.`,
    shared,
  )
}

/** Writes how a rollout ended. */
export async function end(
  { run, log }: StageContext,
  { end, detail, fault }: Pick<RolloutWork, 'end' | 'detail' | 'fault'>,
): Promise<void> {
  log.emit({ kind: 'rollout_end', end, detail, ...(fault === null ? {} : { fault }) })
  await log.settled()
  await run.store.catalogue.endRollout(log.rolloutId, run.clock.now(), end, detail)
}
