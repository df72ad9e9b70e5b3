import { isPaddockError, type StoredArtifact, type Task } from '../core/index.ts'
import { type Artifacts, packArtifact, type TaskSteps, unpackArtifact } from '../envs/index.ts'
import type { VerdictDraft } from '../reward/index.ts'
import type { Blobs, RolloutView, RolloutWork } from '../trajectory/index.ts'

/** A rollout whose agent was done and which nobody has verified yet. */
export type UnverifiedRollout = RolloutView & { readonly work: RolloutWork; readonly end: null }

export function isUnverified(rollout: RolloutView): rollout is UnverifiedRollout {
  return rollout.work !== null && rollout.end === null
}

/** What an agent that was done left. It is in the store. */
export interface Done {
  readonly work: RolloutWork
  /** What has no draft of a verdict yet: the task, or the last of its steps; null where nothing is left to verify. */
  readonly unverified: Unverified | null
  /** Of a task of several steps, those that were verified. */
  readonly steps: { readonly of: TaskSteps; readonly drafts: readonly VerdictDraft[] } | null
}

/** Collected and not verified. */
export interface Unverified {
  readonly task: Task
  readonly artifacts: Artifacts
  /** Whether the model answered the agent while it worked on this. */
  readonly answered: boolean
}

/**
 * Puts artifacts into the blobs. What the names that it resolves with stand for survives this process, so that whoever
 * owns the data directory next can verify it.
 */
export async function keepArtifacts(
  blobs: Pick<Blobs, 'put'>,
  artifacts: Artifacts,
  step?: string,
): Promise<readonly StoredArtifact[]> {
  const kept: StoredArtifact[] = []
  for (const item of artifacts.items) {
    if (!item.content.found) continue
    const { path, sha256, sizeBytes, data } = await packArtifact(item)
    await blobs.put(data)
    kept.push({ path, sha256, sizeBytes, ...(step === undefined ? {} : { step }) })
  }
  return kept
}

/** The artifacts of these names; null when one of them is gone. */
export async function storedArtifacts(
  blobs: Pick<Blobs, 'get'>,
  named: readonly StoredArtifact[],
): Promise<Artifacts | null> {
  try {
    const items = named.map(async ({ path, sha256 }) => unpackArtifact({ path, data: await blobs.get(sha256) }))
    return { items: await Promise.all(items) }
  } catch (error) {
    if (isPaddockError(error) && error.code === 'NOT_FOUND') return null
    throw error
  }
}
