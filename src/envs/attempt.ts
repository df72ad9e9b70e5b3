import { isPaddockError, sha256, type Task } from '../core/index.ts'
import { unscored, type VerdictDraft } from '../reward/index.ts'
import type { SandboxProvider } from '../sandbox/index.ts'
import type { Artifacts, Environment, NamedPlay } from './contract.ts'
import { openTaskBox, verifierBoxes } from './open-box.ts'
import { playInBox } from './play.ts'

export interface AttemptOptions {
  readonly environment: Environment
  readonly task: Task
  readonly play: NamedPlay
  readonly sandbox: SandboxProvider
  readonly signal: AbortSignal
  readonly onProgress?: (line: string) => void
}

/**
 * One play from box to verdict: box, set-up, steps, artifacts, verification; the way of a rollout without a model.
 * Faults of the sandbox give `infra_error`; rejects only with the signal's reason.
 */
export async function attempt(o: AttemptOptions): Promise<VerdictDraft> {
  let artifacts: Artifacts
  try {
    artifacts = await played(o)
  } catch (error) {
    if (o.signal.aborted) throw o.signal.reason
    const infra = isPaddockError(error) && error.family === 'infra'
    const reason = isPaddockError(error) ? error.line() : String(error)
    const { name, verifierVersion } = o.environment
    const verifier = { id: name, version: verifierVersion, sha256: sha256(`${name}\0${verifierVersion}`) }
    return unscored(infra ? 'infra_error' : 'unscorable', reason, { verifier, trust: 'separate' })
  }
  return o.environment.verify({
    task: o.task,
    artifacts,
    openBox: verifierBoxes(o.sandbox, { labels: {}, signal: o.signal }),
    signal: o.signal,
    emit: () => undefined,
  })
}

async function played(o: AttemptOptions): Promise<Artifacts> {
  const { environment, task, signal } = o
  await using box = await openTaskBox(o.sandbox, environment.box(task), {
    signal,
    labels: { role: 'oracle' },
    ...(o.onProgress === undefined ? {} : { onProgress: o.onProgress }),
  })
  const context = { task, box, signal, emit: () => undefined }
  await environment.setup(context)
  for (const { directory, from } of o.play.files ?? []) await box.putFiles(directory, from)
  await playInBox({ ...context, environment, play: o.play.play })
  return await environment.collect(context)
}
