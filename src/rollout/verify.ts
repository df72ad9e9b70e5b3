import { isPaddockError, sha256, type Task, type Verdict } from '../core/index.ts'
import { type Environment, wholeVerdict } from '../envs/index.ts'
import { scored, type ToolCallFact, unscored, type VerdictDraft } from '../reward/index.ts'
import type { AttemptContext } from './attempt-context.ts'
import type { Done, Unverified } from './work.ts'
import { boxLabels, stage, type StageContext, tellEgress } from './attempt-context.ts'
import { stageMs } from './budgets.ts'
import { faultLine } from './judge-end.ts'
import type { Member, RunParts } from './run-parts.ts'
import type { Verified } from './verification/contract.ts'
import { triedAgain, verifyItem } from './verification/item.ts'
import type { VerifyPlaceRequest } from './verification/verify-places.ts'

/** Added to a task's own budget for verification, which covers the tests alone and not the boxes around them. */
export const boxMarginMs = 120_000

/**
 * The verify stage: the environment's verdict on what an agent left, behind the gate for verifications (`onPlace`: it is
 * through). Null where nothing can be verified. A fault, or a budget that is used up, is a draft without a number. Throws the run's reason on
 * cancellation, and `STORE_*`.
 */
export async function verifyStage(
  context: AttemptContext,
  { unverified, steps }: Done,
  onPlace: () => void,
): Promise<VerdictDraft | null> {
  const { run, member } = context
  const drafts = [...(steps?.drafts ?? [])]
  if (unverified !== null) {
    const place = await run.gates.verify.enter(run.signal, placeOf(member))
    onPlace()
    try {
      drafts.push(await verifyDraft(context, unverified))
    } finally {
      place[Symbol.dispose]()
    }
  }
  if (steps !== null) return wholeVerdict(steps.of, drafts)
  return drafts[0] ?? null
}

/** How a member asks for a place to be verified in. */
export function placeOf({
  order,
  group,
  deadlineMs,
}: Pick<Member, 'order' | 'group' | 'deadlineMs'>): VerifyPlaceRequest {
  return { order, groupId: group.id, deadlineMs }
}

/** A verdict on what was collected, before it is one of a rollout. */
export async function verifyDraft(context: StageContext, unverified: Unverified): Promise<VerdictDraft> {
  const { run, log } = context
  const { environment, sandbox } = run
  const { task, artifacts } = unverified
  if (environment === null || sandbox === null) throw new Error('a box was there when the work was collected')
  if (!unverified.answered) return neverAnswered(environment, task)
  await using _filesystem = artifacts.filesystem ?? null
  const { judge } = run
  const judged = { rolloutId: log.rolloutId, purpose: 'verify' }
  const parts = { environment, sandbox, labels: boxLabels(run, log), onEgress: tellEgress(log), emit: log.emit }
  return await verifyWith(context, task, environment, (signal, toolCalls) =>
    verifyItem({ ...parts, judge, judged, signal, toolCalls }, { task, artifacts }),
  )
}

/**
 * Runs a verifier as the verify stage of a rollout: on its budget, its faults as drafts without a number. A fault is tried again, as boot is; a
 * budget that is used up is not.
 */
export async function verifyWith<T extends Verified>(
  context: StageContext,
  task: Task,
  environment: Environment,
  verify: (signal: AbortSignal, toolCalls: readonly ToolCallFact[]) => Promise<T>,
): Promise<T | VerdictDraft> {
  const { run } = context
  const toolCalls = await toolCallsOf(context)
  const taskBudgetMs = environment.box(task).verifyTimeoutMs
  const budgetMs = stageMs('verifyMs', taskBudgetMs === null ? null : taskBudgetMs + boxMarginMs, run.budgets)
  let isOver = false
  const once = async (): Promise<T | VerdictDraft> => {
    try {
      return await stage(context, 'verify', budgetMs, (signal) => verify(signal, toolCalls))
    } catch (error) {
      if (run.signal.aborted) throw run.signal.reason
      isOver = !isPaddockError(error) || error.code === 'STAGE_TIMEOUT'
      return faulted(faultLine(error), environment, task)
    }
  }
  return triedAgain(once, () => isOver)
}

/** Of a verification that a fault of ours ended. */
export function faulted(why: string, environment: Named, task: Task): VerdictDraft {
  return fallback('infra_error', why, environment, task)
}

/** Of an agent that the model never answered: whatever its limit, its exit code or its box say, the policy did nothing. */
export function neverAnswered(environment: Environment, task: Task): VerdictDraft {
  return fallback('unscorable', 'No call of the harness was answered by the model.', environment, task)
}

/** Of a step that could not be set up in the box as the agent left it after an earlier one. */
export function notSetUp({ name, verifierVersion }: Environment, task: Task, why: string): VerdictDraft {
  const verifier = {
    id: `${name}/${task.name}`,
    version: verifierVersion,
    sha256: sha256(`${name}\0${verifierVersion}`),
  }
  return scored(0, { verifier, trust: 'separate', components: { files_unfit: 1 }, evidence: why })
}

/** A draft with its place in the log. */
export function verdictOf(
  { run, log }: { readonly run: Pick<RunParts, 'newId' | 'clock'>; readonly log: { readonly rolloutId: string } },
  draft: VerdictDraft,
): Verdict {
  return { ...draft, id: run.newId(), rolloutId: log.rolloutId, at: run.clock.now(), by: 'verifier', supersedes: null }
}

type Named = Pick<Environment, 'name' | 'verifierVersion'>

/** What became of the tools that the agent called, in order. */
export async function toolCallsOf({ run, log }: StageContext): Promise<readonly ToolCallFact[]> {
  await log.settled()
  const events = await run.store.recorder.events({ rolloutId: log.rolloutId })
  return events.flatMap((event) => {
    if (event.kind !== 'tool_result') return []
    const { callId, tool, status } = event
    return [{ callId, tool, status }]
  })
}

function fallback(
  status: 'unscorable' | 'infra_error',
  reason: string,
  { name, verifierVersion }: Named,
  task: Task,
): VerdictDraft {
  const verifier = {
    id: `${name}/${task.name}`,
    version: verifierVersion,
    sha256: sha256(`${name}\0${verifierVersion}`),
  }
  return unscored(status, reason, { verifier, trust: 'separate' })
}
