import { type Clock, type IdMaker, newId, systemClock, type Task, type Verdict } from '../core/index.ts'
import { type Environment, wholeVerdict } from '../envs/index.ts'
import type { SandboxProvider } from '../sandbox/index.ts'
import type { Store } from '../trajectory/index.ts'
import { stage, type StageContext } from './attempt-context.ts'
import { runBudgets } from './budgets.ts'
import { end, finish } from './finish.ts'
import { cutVerdict } from './group/cut.ts'
import { verifyStored } from './rescore/verify-stored.ts'
import { RolloutLog } from './rollout-log.ts'
import type { UnverifiedRollout } from './work.ts'
import type { VerifyElsewhere } from './verification/contract.ts'
import type { FindRoleEngine } from './role-engine.ts'
import { neverAnswered, toolCallsOf, verdictOf, verifyWith } from './verify.ts'

export interface VerifyLeftOptions {
  readonly store: Pick<Store, 'catalogue' | 'recorder' | 'blobs'>
  /** The one of the task; null for bare tasks, which nothing verifies. */
  readonly environment: Environment | null
  readonly sandbox: SandboxProvider | null
  /** Verifies what needs a verifier; null or left out: that is done here. */
  readonly elsewhere?: VerifyElsewhere | null
  readonly judge: FindRoleEngine | null
  /** Tells what came of it and writes nothing. */
  readonly dryRun?: boolean
  readonly signal: AbortSignal
  readonly clock?: Clock
  readonly newId?: IdMaker
}

/**
 * What became of work that was left.
 * - `verified`: the rollout has its verdict (null for a bare task) and its end.
 * - `infra`: boxes failed; it stays unverified.
 * - `not_stored`: the work cannot be verified any more; the rollout has ended as `infra`.
 */
export type LeftOutcome =
  | { readonly outcome: 'verified'; readonly verdict: Verdict | null }
  | { readonly outcome: 'infra' | 'not_stored'; readonly detail: string }

/**
 * Verifies what an agent of an earlier process, or of a run that was cancelled, left behind, and ends its rollout. The
 * caller sees to it that nobody else does. Throws the signal's reason and `STORE_*`.
 */
export async function verifyLeft(o: VerifyLeftOptions, rollout: UnverifiedRollout, task: Task): Promise<LeftOutcome> {
  const { work } = rollout
  const context = contextOf(o, rollout, task)
  const given = rollout.verdicts.findLast(({ by, status }) => by === 'verifier' && status !== 'infra_error')
  if (given !== undefined) {
    // Whoever verified it was stopped before it wrote the end.
    if (o.dryRun !== true) await end(context, work)
    return { outcome: 'verified', verdict: given }
  }
  const draft = await draftOf(o, context, rollout, task)
  if (draft !== null && 'missing' in draft) {
    const detail = `Its work cannot be verified: ${draft.missing}`
    if (o.dryRun !== true) await end(context, { end: 'infra', detail, fault: work.fault })
    return { outcome: 'not_stored', detail }
  }
  if (draft?.status === 'infra_error') return { outcome: 'infra', detail: draft.reason }
  if (o.dryRun === true) return { outcome: 'verified', verdict: draft === null ? null : verdictOf(context, draft) }
  return { outcome: 'verified', verdict: await finish(context, task, work, draft) }
}

async function draftOf(o: VerifyLeftOptions, context: StageContext, rollout: UnverifiedRollout, task: Task) {
  const { id, work, runId, groupId, slot } = rollout
  const { environment, sandbox, elsewhere = null } = o
  const cut = await cutVerdict(o.store.catalogue, { groupId, slot, end: work.end })
  if (cut !== null) return cut
  const { unverified, drafts } = work.known ?? { unverified: true, drafts: [] }
  if (!unverified) {
    const steps = environment?.steps(task) ?? null
    return steps === null ? null : wholeVerdict(steps, drafts)
  }
  if (environment === null || (sandbox === null && elsewhere === null)) return null
  if (!work.answered) return neverAnswered(environment, task)
  const { log } = context
  const { artifacts, shared } = work
  const stored = { artifacts, shared, cut: work.end !== 'completed', drafts }
  if (elsewhere !== null) {
    const toolCalls = await toolCallsOf(context)
    const left = { rollout, task, environment, work: stored, toolCalls }
    // Its budget begins where it is verified.
    return stage(context, 'verify', null, (signal) => elsewhere(left, signal))
  }
  if (sandbox === null) return null
  return verifyWith(context, task, environment, (signal, toolCalls) => {
    const labels = { run: runId, rollout: id }
    const judged = { rolloutId: id, purpose: 'verify' }
    const verifier = {
      blobs: o.store.blobs,
      environment,
      sandbox,
      labels,
      signal,
      toolCalls,
      emit: log.emit,
      judge: o.judge,
      judged,
    }
    return verifyStored(verifier, task, stored)
  })
}

function contextOf(o: VerifyLeftOptions, rollout: UnverifiedRollout, task: Task): StageContext {
  const { store, environment, sandbox, signal, clock = systemClock } = o
  const id = o.newId ?? newId
  const { runId, harness } = rollout
  const run = { runId, store, environment, sandbox, judge: o.judge, budgets: runBudgets({}), signal, clock, newId: id }
  const identity = { runId, harness, task: task.name }
  const log = new RolloutLog({
    rolloutId: rollout.id,
    identity,
    recorder: o.dryRun === true ? nowhere : store.recorder,
    clock,
    newId: id,
  })
  return { run, log, onPhase: () => undefined }
}

const nowhere = { appendEvent: () => Promise.resolve() }
