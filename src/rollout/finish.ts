import type { Task, Verdict } from '../core/index.ts'
import type { VerdictDraft } from '../reward/index.ts'
import type { RolloutWork } from '../trajectory/index.ts'
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
  const named = draft === null || draft.artifacts.length > 0 ? draft : { ...draft, artifacts: work.artifacts }
  const verdict = named === null ? null : await audited(context, task, verdictOf(context, named))
  if (verdict !== null) {
    await catalogue.appendVerdict(verdict)
    log.verdict(verdict)
  }
  await end(context, work)
  return verdict
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
