import { isDeepStrictEqual } from 'node:util'
import {
  type Clock,
  type Id,
  type IdMaker,
  isPaddockError,
  newId,
  systemClock,
  type Task,
  type Verdict,
} from '../../core/index.ts'
import {
  type Artifacts,
  type Environment,
  filesystemAmong,
  type TaskSteps,
  unpackArtifact,
  verifierBoxes,
  wholeVerdict,
} from '../../envs/index.ts'
import type { VerdictDraft } from '../../reward/index.ts'
import type { SandboxProvider } from '../../sandbox/index.ts'
import { type RolloutView, type Store, verdictInForce, verifiersVerdict } from '../../trajectory/index.ts'
import { Gate } from '../gate.ts'

/**
 * What a second look came to.
 * - `changed`: status, reward or components differ; `confirmed`: the same from another verifier. Both append a verdict.
 * - `outranked`: a verdict is appended, and one that was given late stays in force.
 * - `same`: same verifier, same outcome: nothing is appended, so that rescoring twice changes nothing.
 * - `not_stored`: no verdict, or its artifacts are not in the store; `infra`: boxes failed. Nothing is appended.
 */
export type RescoreOutcome = 'changed' | 'confirmed' | 'outranked' | 'same' | 'not_stored' | 'infra'

export interface Rescored {
  readonly rolloutId: Id
  readonly task: string
  readonly outcome: RescoreOutcome
  readonly before: Verdict | null
  /** The appended verdict, or with `dryRun` the one that would be; null where nothing is appended. */
  readonly after: Verdict | null
  /** One line for a reader. */
  readonly detail: string
}

export interface RescoreOptions {
  readonly store: Pick<Store, 'catalogue' | 'blobs'>
  /** Throws for a name that it does not know. */
  readonly environment: (name: string) => Environment
  readonly sandbox: SandboxProvider
  readonly rollouts: readonly RolloutView[]
  /** Tasks to use in place of the recorded ones of the same digest: the same work with its verifier in another place. */
  readonly tasks?: readonly Task[]
  /** Tells what would change and appends nothing. */
  readonly dryRun?: boolean
  /** Verifications at once. Default 2. */
  readonly parallel?: number
  readonly signal: AbortSignal
  readonly onResult?: (rescored: Rescored) => void
  readonly clock?: Clock
  readonly newId?: IdMaker
}

/**
 * Applies the verifiers of today to the stored artifacts of ended rollouts and appends verdicts that supersede the ones in
 * force. Results come in the order of `rollouts`. A fault of boxes never replaces a verdict (invariant I7). Throws
 * `STORE_*`, what `environment` throws, and the signal's reason.
 */
export async function rescoreRollouts(o: RescoreOptions): Promise<readonly Rescored[]> {
  const gate = new Gate(o.parallel ?? 2)
  const inPlaceOf = new Map((o.tasks ?? []).map((task) => [task.digest, task]))
  return Promise.all(
    o.rollouts.map(async (rollout) => {
      using _ = await gate.enter(o.signal)
      const task = inPlaceOf.get(rollout.taskDigest) ?? (await o.store.catalogue.task(rollout.taskDigest))
      const rescored = await rescore(o, rollout, task)
      o.onResult?.(rescored)
      return rescored
    }),
  )
}

async function rescore(o: RescoreOptions, rollout: RolloutView, task: Task): Promise<Rescored> {
  const before = verifiersVerdict(rollout.verdicts)
  const inForce = verdictInForce(rollout.verdicts)
  const about = { rolloutId: rollout.id, task: task.name, before }
  const untouched = (outcome: RescoreOutcome, detail: string): Rescored => ({ ...about, outcome, after: null, detail })
  if (before === null) return untouched('not_stored', 'it was never verified')
  if (o.environment(task.environment).scoreGroup !== null && before.reward !== null) {
    return untouched('not_stored', 'its reward is one of its group, which cannot be given to one member again')
  }
  const draft = await verifiedAgain(o, task, before)
  if ('missing' in draft) return untouched('not_stored', draft.missing)
  if (draft.status === 'infra_error') return untouched('infra', draft.reason)
  const sameVerifier = isDeepStrictEqual(draft.verifier, before.verifier)
  const sameOutcome = isDeepStrictEqual(outcomeOf(draft), outcomeOf(before))
  if (sameVerifier && sameOutcome) return untouched('same', outcomeLine(before))
  const after: Verdict = {
    ...draft,
    artifacts: draft.artifacts.length > 0 ? draft.artifacts : before.artifacts,
    // Values on calls are not of the artifacts, which is all that a second look has.
    steps: draft.steps.length > 0 ? draft.steps : before.steps,
    id: (o.newId ?? newId)(),
    rolloutId: rollout.id,
    at: (o.clock ?? systemClock).now(),
    by: 'verifier',
    supersedes: before.id,
  }
  if (o.dryRun !== true) await o.store.catalogue.appendVerdict(after)
  const detail = sameOutcome ? outcomeLine(after) : `${outcomeLine(before)} -> ${outcomeLine(after)}`
  if (inForce !== null && inForce.by !== 'verifier') {
    const stands = `${detail}; ${inForce.verifier.id} (${outcomeLine(inForce)}) stays in force`
    return { ...about, outcome: 'outranked', after, detail: stands }
  }
  return { ...about, outcome: sameOutcome ? 'confirmed' : 'changed', after, detail }
}

/** Why there is nothing to verify. */
interface Missing {
  readonly missing: string
}

async function verifiedAgain(o: RescoreOptions, task: Task, before: Verdict): Promise<VerdictDraft | Missing> {
  const steps = o.environment(task.environment).steps(task)
  return steps === null ? verify(o, task, before, before.artifacts) : stepsAgain(o, steps, before)
}

/** The steps as today's verifiers let them go on. One that the agent never came to cannot be verified. */
async function stepsAgain(o: RescoreOptions, steps: TaskSteps, before: Verdict): Promise<VerdictDraft | Missing> {
  const drafts: VerdictDraft[] = []
  for (const [index, task] of steps.tasks.entries()) {
    const artifacts = before.artifacts.filter(({ step }) => step === task.name)
    if (artifacts.length === 0) return { missing: `it has no artifacts of the step ${task.name}` }
    const draft = await verify(o, task, before, artifacts)
    if ('missing' in draft) return draft
    drafts.push(draft)
    if (!steps.goesOn(index, draft)) break
  }
  return wholeVerdict(steps, drafts)
}

async function verify(
  o: RescoreOptions,
  task: Task,
  before: Verdict,
  named: Verdict['artifacts'],
): Promise<VerdictDraft | Missing> {
  const artifacts = await stored(o.store.blobs, before, named)
  if (artifacts === null) return { missing: 'its artifacts are not in the store' }
  if (before.trust === 'shared' && filesystemAmong(artifacts.items).layer === null) {
    return { missing: "the files of its agent's box were too many to be kept" }
  }
  return o.environment(task.environment).verify({
    task,
    artifacts,
    openBox: verifierBoxes(o.sandbox, { labels: {}, signal: o.signal }),
    signal: o.signal,
    emit: () => undefined,
  })
}

/** Null when a named artifact is gone. A verdict that names none was given on an attempt that left nothing behind. */
async function stored(
  blobs: RescoreOptions['store']['blobs'],
  verdict: Verdict,
  named: Verdict['artifacts'],
): Promise<Artifacts | null> {
  // A verdict that a fault kept from a number may never have seen the artifacts.
  if (verdict.status === 'infra_error' && verdict.artifacts.length === 0) return null
  try {
    const items = named.map(async ({ path, sha256 }) => unpackArtifact({ path, data: await blobs.get(sha256) }))
    return { items: await Promise.all(items) }
  } catch (error) {
    if (isPaddockError(error) && error.code === 'NOT_FOUND') return null
    throw error
  }
}

function outcomeOf({ status, reward, components }: Verdict | VerdictDraft) {
  return { status, reward, components }
}

function outcomeLine({ status, reward }: Verdict): string {
  return reward === null ? status : `${status} ${String(reward)}`
}
