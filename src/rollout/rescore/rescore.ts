import { isDeepStrictEqual } from 'node:util'
import {
  type Clock,
  type Id,
  type IdMaker,
  newId,
  PaddockError,
  systemClock,
  type Task,
  type Verdict,
} from '../../core/index.ts'
import type { Environment } from '../../envs/index.ts'
import type { VerdictDraft } from '../../reward/index.ts'
import type { SandboxProvider } from '../../sandbox/index.ts'
import { type RolloutView, type Store, verdictInForce, verifiersVerdict } from '../../trajectory/index.ts'
import { ofItsPolicies } from '../finish.ts'
import { Gate } from '../gate.ts'
import { verifyLeft } from '../left.ts'
import { isUnverified } from '../work.ts'
import type { FindRoleEngine } from '../role-engine.ts'
import type { RecordedWork, StoredWork, Verified, VerifyElsewhere } from '../verification/contract.ts'
import { triedAgain } from '../verification/item.ts'
import { verifyStored } from './verify-stored.ts'

/**
 * What a second look came to.
 * - `changed`: status, reward or components differ; `confirmed`: the same from another verifier. Both append a verdict.
 * - `outranked`: a verdict is appended, and one that was given late stays in force.
 * - `same`: same verifier, same outcome: nothing is appended, so that rescoring twice changes nothing.
 * - `verified`: it was waiting for its verdict, which it has now, and its end.
 * - `not_stored`: no verdict, or its artifacts are not in the store; `infra`: boxes failed. Nothing is appended.
 */
export type RescoreOutcome = 'verified' | 'changed' | 'confirmed' | 'outranked' | 'same' | 'not_stored' | 'infra'

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
  readonly store: Pick<Store, 'catalogue' | 'blobs' | 'recorder'>
  /** Throws for a name that it does not know. */
  readonly environment: (name: string) => Environment
  /** Null: `elsewhere` verifies. */
  readonly sandbox: SandboxProvider | null
  /** Verifies in place of this process: jobs that it and nodes take. Unverified rollouts are left to whoever owns their store. Default: null. */
  readonly elsewhere?: VerifyElsewhere | null
  /** The engine that judges are asked at, on the record. Default: none. */
  readonly judge?: FindRoleEngine | null
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
 * Applies the verifiers of today to the stored artifacts of rollouts, ended and unverified ones, and appends verdicts that supersede the ones in
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
  if (isUnverified(rollout)) {
    if (o.elsewhere != null) return untouched('not_stored', 'it waits for its verdict, which comes by itself')
    const left = await verifyLeft(
      {
        ...o,
        judge: o.judge ?? null,
        environment: task.environment === 'none' ? null : o.environment(task.environment),
      },
      rollout,
      task,
    )
    return left.outcome === 'verified'
      ? {
          ...about,
          outcome: 'verified',
          after: left.verdict,
          detail: left.verdict === null ? '' : outcomeLine(left.verdict),
        }
      : untouched(left.outcome, left.detail)
  }
  if (before === null) return untouched('not_stored', 'it was never verified')
  if (o.environment(task.environment).scoreGroup !== null && before.reward !== null) {
    return untouched('not_stored', 'its reward is one of its group, which cannot be given to one member again')
  }
  const work = workOf(rollout, before)
  if (work === null) return untouched('not_stored', 'its artifacts are not in the store')
  const told = await verified(o, {
    rollout,
    task,
    environment: o.environment(task.environment),
    work,
    toolCalls: null,
  })
  if ('missing' in told) return untouched('not_stored', told.missing)
  const draft = await ofItsPolicies(o.store.recorder, rollout.id, told)
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

async function verified(o: RescoreOptions, one: RecordedWork & { readonly rollout: RolloutView }): Promise<Verified> {
  const { elsewhere = null, sandbox, store, signal, judge = null } = o
  if (elsewhere !== null) return elsewhere(one, signal)
  const { rollout, task, environment, work } = one
  if (sandbox === null) throw new PaddockError('INTERNAL', 'nothing verifies here')
  const judged = { rolloutId: rollout.id, purpose: 'rescore' }
  const emit = (): void => undefined
  const verifier = { blobs: store.blobs, environment, sandbox, labels: {}, signal, emit, judge, judged }
  return triedAgain(() => verifyStored(verifier, task, work))
}

/** What the verdict in force says of the agent's work. A verdict that a fault kept from a number may never have seen it. */
function workOf(rollout: RolloutView, before: Verdict): StoredWork | null {
  if (before.status === 'infra_error' && before.artifacts.length === 0) return null
  const shared = rollout.work?.shared ?? before.trust === 'shared'
  return { artifacts: before.artifacts, shared, cut: rollout.end !== 'completed' }
}

function outcomeOf({ components, ...verdict }: Verdict | VerdictDraft) {
  const { status, reward } = verdict
  return { status, reward, components, byPolicy: verdict.reward === null ? undefined : verdict.byPolicy }
}

function outcomeLine({ status, reward }: Verdict): string {
  return reward === null ? status : `${status} ${String(reward)}`
}
