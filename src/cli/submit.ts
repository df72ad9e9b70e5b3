import type { LoadedConfig } from '../config/index.ts'
import { type Id, newId, PaddockError } from '../core/index.ts'
import type { RunProgress } from '../rollout/index.ts'
import type { SubmittedRun } from '../server/index.ts'
import { isFork, prepareFork, prepareResume, prepareRun } from './execute.ts'
import type { Owner, Submit } from './owner.ts'
import { asPaddockError } from './present/failure.ts'

/** Takes a run in at the owner: answers when its parts are found, runs it in the background, tells it live. */
export async function submitRun(
  owner: Owner,
  loaded: LoadedConfig,
  asked: Parameters<Submit>[1],
  signal: AbortSignal,
): Promise<SubmittedRun> {
  const runId = 'resume' in asked ? asked.resume : newId()
  const release = claimRun(owner, runId)
  try {
    const prepared =
      'resume' in asked
        ? await prepareResume(loaded, owner.store.catalogue, asked)
        : isFork(asked)
          ? await prepareFork(loaded, owner.store.catalogue, asked)
          : await prepareRun(loaded, asked, signal)
    const publish = (progress: RunProgress): void => owner.progress(runId, progress)
    const stop = new AbortController()
    const ended = prepared
      .start({ owner, runId, signal: AbortSignal.any([signal, stop.signal]), onProgress: publish })
      // It can be resumed as soon as its end is published.
      .finally(release)
      .then((summary) => owner.live.publish({ kind: 'run', data: { runId, summary } }))
      .catch((error: unknown) => owner.live.publish({ kind: 'run', data: { runId, error: asPaddockError(error) } }))
      .finally(() => owner.submitted.delete(runId))
    owner.submitted.set(runId, { ended, cancel: () => stop.abort(new Error('cancelled over the control API')) })
    return { runId }
  } catch (error) {
    release()
    throw error
  }
}

/** Keeps a run from being gone on with twice at once. Throws `RUN_REFUSED`. */
export function claimRun({ running }: Pick<Owner, 'running'>, runId: Id): () => void {
  if (running.has(runId)) {
    throw new PaddockError('RUN_REFUSED', `the run ${runId} is going on in process ${process.pid}`, {
      fix: 'Wait for its end; `paddock list` shows it.',
    })
  }
  running.add(runId)
  return () => running.delete(runId)
}
