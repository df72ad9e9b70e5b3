import type { RolloutView } from '../trajectory/index.ts'
import { verdictInForce } from '../trajectory/index.ts'
import type { RolloutSummary } from './contract.ts'
import { verifyLeft } from './left.ts'
import { placeOf } from './verify.ts'
import { isUnverified } from './work.ts'
import type { Member, RunParts } from './run-parts.ts'

/** What there is of a member when its run is gone on with. */
export interface TakenUp {
  /** The attempts so far, the last of them in its place if it counts. */
  readonly summaries: readonly RolloutSummary[]
  /** True: the member is there, and no further attempt is made. */
  readonly over: boolean
}

/**
 * Takes up a member of a run where an earlier process, or a run that was cancelled, left it: one that has ended stays, one
 * that is unverified is verified now, and one that never came to its work, or ended as `infra` or `cancelled`, is missing.
 * Throws `STORE_*`.
 */
export async function takeUpMember(run: RunParts, member: Member, before: readonly RolloutView[]): Promise<TakenUp> {
  const last = before.at(-1)
  if (last === undefined) return { summaries: [], over: false }
  const now = await settled(run, member, last)
  const unverified = isUnverified(now)
  const over = unverified || (now.end !== null && now.end !== 'infra' && now.end !== 'cancelled')
  const earlier = before.slice(0, -1).map((rollout) => summaryOf(rollout, member, true))
  const summary = summaryOf(now, member, !over)
  if (over) run.onProgress({ type: 'ended', rollout: summary })
  return { summaries: [...earlier, summary], over }
}

/** The attempt with its verdict, if it was waiting for one and could be verified. */
async function settled(run: RunParts, member: Member, rollout: RolloutView): Promise<RolloutView> {
  if (!isUnverified(rollout)) return rollout
  try {
    // Places are of this machine.
    using _place = run.elsewhere === null ? await run.gates.verify.enter(run.signal, placeOf(member)) : null
    await verifyLeft(run, rollout, member.task)
  } catch (error) {
    if (!run.signal.aborted) throw error
  }
  return run.store.catalogue.rollout(rollout.id)
}

/** An attempt that is in the catalogue, as a run tells it. */
export function summaryOf(rollout: RolloutView, { task }: Pick<Member, 'task'>, retried: boolean): RolloutSummary {
  const { work, startedAt } = rollout
  const until = rollout.endedAt ?? work?.at ?? null
  return {
    rolloutId: rollout.id,
    groupId: rollout.groupId,
    task: { name: task.name, digest: task.digest },
    slot: rollout.slot,
    attempt: rollout.attempt,
    harness: rollout.harness,
    end: rollout.end ?? work?.end ?? 'infra',
    detail: rollout.end === null ? (work?.detail ?? '') : rollout.endDetail,
    verdict: verdictInForce(rollout.verdicts),
    unverified: isUnverified(rollout),
    taints: rollout.taints,
    calls: work?.calls ?? 0,
    sampledTokens: work?.sampledTokens ?? 0,
    durationMs: startedAt === null || until === null ? 0 : until - startedAt,
    agentMs: work?.agentMs ?? 0,
    retried,
  }
}
