import type { Task } from '../../core/index.ts'
import { filesystemAmong, type TaskSteps, wholeVerdict } from '../../envs/index.ts'
import type { VerdictDraft } from '../../reward/index.ts'
import type { Blobs } from '../../trajectory/index.ts'
import type { Missing, StoredWork } from '../verification/contract.ts'
import { type Verifier, verifyItem } from '../verification/item.ts'
import { storedArtifacts } from '../work.ts'

/** What stored work is verified with. */
export interface StoredVerifier extends Verifier {
  readonly blobs: Pick<Blobs, 'get'>
}

/** Applies the verifier of today to stored work, step by step where the task has steps. */
export async function verifyStored(o: StoredVerifier, task: Task, work: StoredWork): Promise<VerdictDraft | Missing> {
  const steps = o.environment.steps(task)
  return steps === null ? verifyOne(o, task, work) : verifySteps(o, steps, work)
}

/** The steps as today's verifiers let them go on. One that the agent never came to cannot be verified. */
async function verifySteps(o: StoredVerifier, steps: TaskSteps, work: StoredWork): Promise<VerdictDraft | Missing> {
  const drafts: VerdictDraft[] = [...(work.drafts ?? [])]
  for (const [index, task] of steps.tasks.entries()) {
    if (index < (work.drafts ?? []).length) continue
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
  const artifacts = await storedArtifacts(o.blobs, work.artifacts)
  if (artifacts === null) return { missing: 'its artifacts are not in the store' }
  if (work.shared && filesystemAmong(artifacts.items).layer === null) {
    return { missing: "the files of its agent's box were too many to be kept" }
  }
  return verifyItem(o, { task, artifacts })
}
