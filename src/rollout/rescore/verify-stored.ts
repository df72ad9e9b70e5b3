import type { StoredArtifact, Task } from '../../core/index.ts'
import {
  type Environment,
  filesystemAmong,
  type TaskSteps,
  type VerifyContext,
  verifierBoxes,
  wholeVerdict,
} from '../../envs/index.ts'
import type { VerdictDraft } from '../../reward/index.ts'
import type { BoxLabels, SandboxProvider } from '../../sandbox/index.ts'
import type { Blobs } from '../../trajectory/index.ts'
import type { FindRoleEngine } from '../role-engine.ts'
import { type JudgedWork, withJudge } from '../with-judge.ts'
import { storedArtifacts } from '../work.ts'

/** What stored work is verified with. */
export interface StoredVerifier
  extends Pick<VerifyContext, 'signal' | 'emit'>, Partial<Pick<VerifyContext, 'toolCalls'>> {
  readonly blobs: Pick<Blobs, 'get'>
  readonly environment: Environment
  readonly sandbox: SandboxProvider
  readonly labels: Partial<Pick<BoxLabels, 'run' | 'rollout'>>
  /** Null: no judge is configured. */
  readonly judge: FindRoleEngine | null
  readonly judged: JudgedWork
}

/** The names of what an agent left. */
export interface StoredWork {
  readonly artifacts: readonly StoredArtifact[]
  /** Verified on all files of the agent's box. */
  readonly shared: boolean
  /** True where a limit ended the agent: of several steps, the later ones were never begun. */
  readonly cut: boolean
}

/** Why there is nothing to verify. */
export interface Missing {
  readonly missing: string
}

/** Applies the verifier of today to stored work, step by step where the task has steps. */
export async function verifyStored(o: StoredVerifier, task: Task, work: StoredWork): Promise<VerdictDraft | Missing> {
  const steps = o.environment.steps(task)
  return steps === null ? verifyOne(o, task, work) : verifySteps(o, steps, work)
}

/** The steps as today's verifiers let them go on. One that the agent never came to cannot be verified. */
async function verifySteps(o: StoredVerifier, steps: TaskSteps, work: StoredWork): Promise<VerdictDraft | Missing> {
  const drafts: VerdictDraft[] = []
  for (const [index, task] of steps.tasks.entries()) {
    const artifacts = work.artifacts.filter(({ step }) => step === task.name)
    if (artifacts.length === 0 && index > 0 && work.cut) break
    if (artifacts.length === 0) return { missing: `it has no artifacts of the step ${task.name}` }
    const draft = await verifyOne(o, task, { ...work, artifacts })
    if ('missing' in draft) return draft
    drafts.push(draft)
    if (!steps.goesOn(index, draft)) break
  }
  return wholeVerdict(steps, drafts)
}

async function verifyOne(o: StoredVerifier, task: Task, work: StoredWork): Promise<VerdictDraft | Missing> {
  const { environment, sandbox, signal, emit, toolCalls, labels } = o
  const artifacts = await storedArtifacts(o.blobs, work.artifacts)
  if (artifacts === null) return { missing: 'its artifacts are not in the store' }
  if (work.shared && filesystemAmong(artifacts.items).layer === null) {
    return { missing: "the files of its agent's box were too many to be kept" }
  }
  return withJudge(o.judge, o.judged, (judge) =>
    environment.verify({
      task,
      artifacts,
      ...(toolCalls === undefined ? {} : { toolCalls }),
      openBox: verifierBoxes(sandbox, { labels, signal }),
      ...judge,
      signal,
      emit,
    }),
  )
}
