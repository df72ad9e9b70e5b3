import { present, type Verdict } from '../core/index.ts'
import type { AttemptContext } from './attempt-context.ts'
import { attemptTask } from './attempt.ts'
import { Closing } from './closing.ts'
import type { RolloutSummary } from './contract.ts'
import { end, finish } from './finish.ts'
import { cutDraft, cutVerdict } from './group/cut.ts'
import { RolloutLog } from './rollout-log.ts'
import type { Member, RunParts } from './run-parts.ts'
import { verifyStage } from './verify.ts'

/** A rollout and, for one that ended as `infra`, whether another attempt could end otherwise. */
export interface EndedRollout {
  readonly summary: RolloutSummary
  readonly fault: unknown
}

/**
 * One attempt at one task, from queue to verdict, recorded. Resolves however it ends; throws only `STORE_*`: what
 * cannot be recorded did not happen. The end is written last: a rollout without one is unverified where its agent was done
 * (its work is in the catalogue), else it was interrupted.
 */
export async function runRollout(
  run: RunParts,
  member: Member,
  attempt: number,
  leave: () => void = () => undefined,
): Promise<EndedRollout> {
  const { store, clock } = run
  const { task, group, slot } = member
  const rolloutId = run.newId()
  const identity = { groupId: group.id, slot, attempt, harness: run.harness.name }
  await store.catalogue.putRollout({ id: rolloutId, runId: run.runId, ...identity, createdAt: clock.now() })
  for (const [name, value] of Object.entries(run.labels)) await store.catalogue.label(rolloutId, name, value)
  const traced = { runId: run.runId, harness: run.harness.name, task: task.name }
  const log = new RolloutLog({
    rolloutId,
    identity: traced,
    recorder: store.recorder,
    clock,
    newId: run.newId,
    onEvent: (body) => {
      if (body.kind === 'reward') run.onProgress({ type: 'reward', rolloutId, parts: body.parts })
    },
  })
  let leftQueueAt: number | null = null
  const ending = new Closing()
  const context: AttemptContext = {
    run,
    ending,
    leave,
    member,
    attempt: { id: rolloutId },
    log,
    onPhase: (stage, phase) => {
      if (stage === 'boot' && phase === 'start') leftQueueAt = clock.monotonic()
      run.onProgress({ type: 'stage', rolloutId, task: task.name, slot, attempt, stage, phase })
    },
  }
  const attempted = await attemptTask(context)
  const { end: how, detail, done, calls, sampledTokens, taints, agentMs } = attempted
  // A run that is cancelled leaves what its agents left to be verified later.
  const draft =
    done === null
      ? null
      : ((member.spec === undefined
          ? await cutVerdict(store.catalogue, { groupId: group.id, slot, end: how })
          : cutDraft(member.spec, how)) ??
        (await verifyStage(context, done, leave).catch((error: unknown) => {
          if (!run.signal.aborted) throw error
          return 'unverified' as const
        })))
  await ending.run()
  const unverified = draft === 'unverified'
  let verdict: Verdict | null = null
  if (done === null) await end(context, { end: how, detail, fault: attempted.harnessFault })
  else if (draft !== 'unverified') verdict = await finish(context, task, done.work, draft)
  await log.settled()
  const durationMs = leftQueueAt === null ? 0 : Math.round(clock.monotonic() - leftQueueAt)
  const about = { rolloutId, ...identity, task: { name: task.name, digest: task.digest }, end: how, detail }
  const emptyToolResults = log.emptyResults.share ?? undefined
  const figures = { taints, calls, sampledTokens, durationMs, agentMs }
  return {
    summary: { ...about, verdict, unverified, ...figures, retried: false, ...present({ emptyToolResults }) },
    fault: how === 'infra' ? attempted.fault : null,
  }
}
