import { type RolloutEnd, sha256, type Task, type Verdict } from '../core/index.ts'
import { type Artifacts, type Environment, packArtifact, verifierBoxes } from '../envs/index.ts'
import { unscored, type VerdictDraft } from '../reward/index.ts'
import type { SandboxProvider } from '../sandbox/index.ts'
import { type AttemptContext, boxLabels, stage, tellEgress } from './attempt.ts'
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
  const { run, log } = context
  const place = await run.gates.verify.enter(run.signal)
  try {
    const kept = await keepArtifacts(context, parts.artifacts)
    const draft = await draftOf(context, parts)
    // What was stored is named also where the verifier did not come to it: `rescore` starts from there.
    const artifacts = draft.artifacts.length > 0 ? draft.artifacts : kept
    return { ...draft, artifacts, id: run.newId(), rolloutId: log.rolloutId, at: run.clock.now(), supersedes: null }
  } finally {
    place[Symbol.dispose]()
  }
}

async function draftOf(context: AttemptContext, parts: VerifyParts): Promise<VerdictDraft> {
  const { run, member, log } = context
  const { environment, sandbox, artifacts } = parts
  const { task } = member
  if (parts.end === 'harness_crash' && parts.calls === 0) {
    return fallback('unscorable', 'The harness crashed before it asked the model anything.', environment, task)
  }
  const taskBudgetMs = environment.box(task).verifyTimeoutMs
  const budgetMs = taskBudgetMs === null ? run.budgets.verifyMs : taskBudgetMs + boxMarginMs
  try {
    return await stage(context, 'verify', budgetMs, (signal) =>
      environment.verify({
        task,
        artifacts,
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
