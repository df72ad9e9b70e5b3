import type { Verdict } from '../core/index.ts'
import { wholeVerdict } from '../envs/index.ts'
import { audited } from './audit.ts'
import { Closing } from './closing.ts'
import type { AttemptContext } from './attempt-context.ts'
import { type Attempted, attemptTask } from './attempt.ts'
import type { RolloutSummary } from './contract.ts'
import { judgeEnd } from './judge-end.ts'
import { RolloutLog } from './rollout-log.ts'
import type { Member, RunParts } from './run-parts.ts'
import { verdictOf, verifyStage } from './verify.ts'

/** A rollout and, for one that ended as `infra`, whether another attempt could end otherwise. */
export interface EndedRollout {
  readonly summary: RolloutSummary
  readonly fault: unknown
}

/**
 * One attempt at one task, from queue to verdict, recorded. Resolves however it ends; throws only `STORE_*`: what
 * cannot be recorded did not happen. The end is written last, so a rollout without one was interrupted.
 */
export async function runRollout(run: RunParts, member: Member, attempt: number): Promise<EndedRollout> {
  const { store, clock } = run
  const { task, group, slot } = member
  const rolloutId = run.newId()
  const identity = { groupId: group.id, slot, attempt, harness: run.harness.name }
  await store.catalogue.putRollout({ id: rolloutId, runId: run.runId, ...identity, createdAt: clock.now() })
  const traced = { runId: run.runId, harness: run.harness.name, task: task.name }
  const log = new RolloutLog({ rolloutId, identity: traced, recorder: store.recorder, clock, newId: run.newId })
  let leftQueueAt: number | null = null
  const ending = new Closing()
  const context: AttemptContext = {
    run,
    ending,
    member,
    log,
    onPhase: (stage, phase) => {
      if (stage === 'boot' && phase === 'start') leftQueueAt = clock.monotonic()
      run.onProgress({ type: 'stage', rolloutId, task: task.name, slot, attempt, stage, phase })
    },
  }
  const attempted = await attemptTask(context)
  const { verdict: given, end, detail } = await judged(context, attempted)
  await ending.run()
  const verdict = given === null ? null : await audited(context, given)
  for (const cause of attempted.taints) await store.catalogue.taint(rolloutId, cause)
  if (verdict !== null) await store.catalogue.appendVerdict(verdict)
  if (verdict !== null) log.verdict(verdict)
  const fault = attempted.facts.report?.fault
  log.emit({ kind: 'rollout_end', end, detail, ...(fault === undefined ? {} : { fault }) })
  await log.settled()
  await store.catalogue.endRollout(rolloutId, clock.now(), end, detail)
  const { calls, sampledTokens, taints, agentMs } = attempted
  const durationMs = leftQueueAt === null ? 0 : Math.round(clock.monotonic() - leftQueueAt)
  const about = { rolloutId, ...identity, task: { name: task.name, digest: task.digest } }
  const summary = { ...about, end, detail, verdict, taints, calls, sampledTokens, durationMs, agentMs, retried: false }
  return { summary, fault: end === 'infra' ? attempted.facts.fault : null }
}

async function judged(
  context: AttemptContext,
  attempted: Attempted,
): Promise<Pick<RolloutSummary, 'end' | 'detail'> & { readonly verdict: Verdict | null }> {
  const { environment, sandbox, signal } = context.run
  const { facts, artifacts, calls, steps } = attempted
  const ended = judgeEnd(facts)
  const scorable = ended.end !== 'infra' && ended.end !== 'cancelled'
  if (scorable && steps !== null && steps.drafts.length > 0) {
    return { ...ended, verdict: verdictOf(context, wholeVerdict(steps.of, steps.drafts)) }
  }
  if (!scorable || environment === null || sandbox === null || artifacts === null) return { ...ended, verdict: null }
  try {
    const parts = { environment, sandbox, artifacts, end: ended.end, calls }
    return { ...ended, verdict: await verifyStage(context, parts) }
  } catch (error) {
    if (!signal.aborted) throw error
    return { ...judgeEnd({ ...facts, cancelled: true }), verdict: null }
  }
}
