import { createHash } from 'node:crypto'
import {
  makeTask,
  type Clock,
  type Digest,
  type Id,
  type Task,
  type VerdictDraft,
  PaddockError,
  systemClock,
} from '../../core/index.ts'
import { importedHarness, type Store } from '../contract/index.ts'
import type { ImportedThread, ImportedTrajectory } from './contract.ts'
import { readTrajectories } from './read.ts'
import { takeIn, type TakenIn } from './taken-in.ts'

export interface ImportRequest {
  readonly format: string
  readonly paths: readonly string[]
  /** Name of the run; the format by default. */
  readonly name?: string
  readonly split?: string
  /** The reward of what has none in its file; without it such a rollout has no verdict. */
  readonly reward?: number
  readonly labels?: Readonly<Record<string, string>>
  readonly clock?: Clock
  readonly signal?: AbortSignal
}

export interface ImportReport {
  readonly runId: Id
  /** False: an earlier import of the same files is gone on with, or was whole. */
  readonly isNew: boolean
  readonly trajectories: number
  /** Of these, by this call. */
  readonly taken: number
  readonly groups: number
  readonly withReward: number
  /** Where a result stands without a trajectory, so that nothing could be imported. */
  readonly withoutTrajectory: readonly string[]
}

/**
 * Takes trajectories of others into a store: a run of their own, a group per task, a rollout per trajectory, a session per thread, a
 * call per answer. All is read and checked before the first is written. The same files imported again with the same options go on where it was cut off, and
 * change nothing where it was not. Throws `IMPORT_INVALID`, `USAGE`.
 */
export async function importTrajectories(store: Store, request: ImportRequest): Promise<ImportReport> {
  const { digest, trajectories, withoutTrajectory } = await survey(request)
  let withReward = 0
  const named = new Map<string, Task>()
  const rollouts = async function* (): AsyncGenerator<TakenIn> {
    for await (const one of readTrajectories(request.format, request.paths)) {
      if ((one.reward ?? request.reward ?? null) !== null) withReward += 1
      yield takenIn(one, { ...request, task: taskOf(one, request, named), digest })
    }
  }
  const { format, reward = null } = request
  const report = await takeIn(store, {
    kind: 'import',
    digest,
    about: { format, trajectories, reward },
    name: request.name ?? `import-${format}`,
    harness: importedHarness,
    promptVariant: 'imported',
    rollouts: rollouts(),
    clock: request.clock ?? systemClock,
    signal: request.signal,
  })
  return { ...report, trajectories, withReward, withoutTrajectory }
}

/** A name is one task, however its attempts begin; where its instruction is given, the first one counts. `named`: those so far. */
function taskOf({ task, threads }: ImportedTrajectory, request: ImportRequest, named: Map<string, Task>): Task {
  const { name, digest } = task
  const key = JSON.stringify([name, digest])
  const known = name === null ? undefined : named.get(key)
  if (known !== undefined) return known
  const made = makeTask({
    name: name ?? 'imported',
    environment: importedHarness,
    instruction: task.instruction ?? (name === null ? firstWords(threads[0]) : ''),
    split: request.split ?? 'train',
    data: { name, ...(digest === undefined ? {} : { digest }) },
    source: request.format,
  })
  if (name !== null) named.set(key, made)
  return made
}

function takenIn(
  one: ImportedTrajectory,
  { task, digest, ...request }: ImportRequest & { readonly task: Task; readonly digest: Digest },
): TakenIn {
  const labels = {
    ...one.labels,
    ...(one.model === null ? {} : { model: one.model }),
    ...request.labels,
    place: one.place,
  }
  const reward = one.reward ?? request.reward ?? null
  const verdict: VerdictDraft | null =
    reward === null
      ? null
      : {
          status: 'scored',
          reward,
          components: {},
          steps: [],
          evidence: one.reward === null ? 'Given by whoever imported it.' : `As ${one.place} says.`,
          artifacts: [],
          verifier: { id: 'imported', version: request.format, sha256: digest },
          trust: 'host',
          costTokens: 0,
        }
  return { ...one, labels, task, verdict }
}

/** Reads all of it once: that it can be imported, and what it is. */
async function survey(
  request: ImportRequest,
): Promise<{ digest: Digest; trajectories: number; withoutTrajectory: readonly string[] }> {
  const { format, paths, name = null, split = null, reward = null, labels = {} } = request
  // What is written of the same files under other options is another import.
  const hash = createHash('sha256').update(JSON.stringify([format, name, split, reward, labels]))
  let trajectories = 0
  const withoutTrajectory: string[] = []
  for await (const one of readTrajectories(format, paths, withoutTrajectory)) {
    hash.update(JSON.stringify(one))
    trajectories += 1
  }
  if (trajectories === 0) {
    throw new PaddockError('IMPORT_INVALID', 'There is nothing in the given files', { fix: 'Name others.' })
  }
  return { digest: hash.digest('hex'), trajectories, withoutTrajectory }
}

function firstWords({ messages }: ImportedThread): string {
  for (const text of messages) {
    const { role, content } = JSON.parse(text) as { readonly role?: unknown; readonly content?: unknown }
    if (role !== 'user') continue
    if (typeof content === 'string') return content
    if (!Array.isArray(content)) return ''
    return content
      .map((part: unknown) => (typeof part === 'object' && part !== null && 'text' in part ? String(part.text) : ''))
      .join('')
  }
  return ''
}
