import { type RolloutEnd, sha256, type Task, type Verdict } from '../core/index.ts'
import { type Artifacts, type Environment, packArtifact, verifierBoxes } from '../envs/index.ts'
import { type ToolCallFact, unscored, type VerdictDraft } from '../reward/index.ts'
import type { SandboxProvider } from '../sandbox/index.ts'
import { type AttemptContext, boxLabels, stage, tellEgress } from './attempt-context.ts'
import { faultLine } from './judge-end.ts'

/** Added to a task's own budget for verification, which covers the tests alone and not the boxes around them. */
const boxMarginMs = 120_000

/** What there is to verify. */
export interface VerifyParts {
  readonly environment: Environment
  readonly sandbox: SandboxProvider
  readonly artifacts: Artifacts
  readonly end: RolloutEnd
  readonly calls: number
}

/**
 * The verify stage: artifacts into the blobs, then the environment's verdict on them. A fault, or a budget that is used
 * up, is a verdict without a number. Throws the run's reason on cancellation, and `STORE_*`.
 */
export async function verifyStage(context: AttemptContext, parts: VerifyParts): Promise<Verdict> {
  const { run } = context
  const place = await run.gates.verify.enter(run.signal)
  try {
    return verdictOf(context, await verifyDraft(context, parts))
  } finally {
    place[Symbol.dispose]()
  }
}

/** The same without a place among the workers and before it is a verdict: of one step of several. */
export async function verifyDraft(context: AttemptContext, parts: VerifyParts): Promise<VerdictDraft> {
  const kept = await keepArtifacts(context, parts.artifacts)
  const draft = await draftOf(context, parts)
  // What was stored is named also where the verifier did not come to it: `rescore` starts from there.
  return draft.artifacts.length > 0 ? draft : { ...draft, artifacts: kept }
}

/** A draft with its place in the log. */
export function verdictOf({ run, log }: AttemptContext, draft: VerdictDraft): Verdict {
  return { ...draft, id: run.newId(), rolloutId: log.rolloutId, at: run.clock.now(), by: 'verifier', supersedes: null }
}

async function draftOf(context: AttemptContext, parts: VerifyParts): Promise<VerdictDraft> {
  const { run, member, log } = context
  const { environment, sandbox, artifacts } = parts
  const { task } = member
  if (parts.end === 'harness_crash' && parts.calls === 0) {
    return fallback('unscorable', 'The harness crashed before it asked the model anything.', environment, task)
  }
  const toolCalls = await toolCallsOf(context)
  const taskBudgetMs = environment.box(task).verifyTimeoutMs
  const budgetMs = taskBudgetMs === null ? run.budgets.verifyMs : taskBudgetMs + boxMarginMs
  try {
    return await stage(context, 'verify', budgetMs, (signal) =>
      environment.verify({
        task,
        artifacts,
        toolCalls,
        openBox: verifierBoxes(sandbox, { labels: boxLabels(run, log), signal, onEgress: tellEgress(log) }),
        signal,
        emit: log.emit,
      }),
    )
  } catch (error) {
    if (run.signal.aborted) throw run.signal.reason
    return fallback('infra_error', faultLine(error), environment, task)
  }
}

async function toolCallsOf({ run, log }: AttemptContext): Promise<readonly ToolCallFact[]> {
  await log.settled()
  const events = await run.store.recorder.events({ rolloutId: log.rolloutId })
  return events.flatMap((event) => {
    if (event.kind !== 'tool_result') return []
    const { callId, tool, status } = event
    return [{ callId, tool, status }]
  })
}

async function keepArtifacts({ run }: AttemptContext, artifacts: Artifacts): Promise<Verdict['artifacts']> {
  const kept: Verdict['artifacts'][number][] = []
  for (const item of artifacts.items) {
    if (!item.content.found) continue
    const { path, sha256: digest, sizeBytes, data } = await packArtifact(item)
    await run.store.blobs.put(data)
    kept.push({ path, sha256: digest, sizeBytes })
  }
  return kept
}

function fallback(
  status: 'unscorable' | 'infra_error',
  reason: string,
  { name, verifierVersion }: Environment,
  task: Task,
): VerdictDraft {
  const verifier = {
    id: `${name}/${task.name}`,
    version: verifierVersion,
    sha256: sha256(`${name}\0${verifierVersion}`),
  }
  return unscored(status, reason, { verifier, trust: 'separate' })
}
