import {
  type Clock,
  type Id,
  type IdMaker,
  newId,
  PaddockError,
  present,
  sha256,
  systemClock,
  type Verdict,
} from '../core/index.ts'
import { evidenceLimit } from '../reward/index.ts'
import { type Store, verdictInForce } from '../trajectory/index.ts'

/** What somebody says of an ended rollout later: a person, a slow judge, an outcome in the world. */
export interface LateVerdict {
  /** Who says so; becomes the verifier `late/<source>`. */
  readonly source: string
  /** A number; null takes the number away, for the reason given; absent leaves the one in force. */
  readonly reward?: number | null | undefined
  /** Default `scored` with a number, `unscorable` without. */
  readonly status?: Verdict['status'] | undefined
  /** Why there is no number: with one, or where the verdict in force is left as it is, it is refused. */
  readonly reason?: string | undefined
  /** Numbers of policies that get another one than the rest: they go with a number. Absent: with a new reward none, else those in force. */
  readonly byPolicy?: Readonly<Record<string, number>> | undefined
  /** Set beside those in force, or in their place where the name is the same. */
  readonly components?: Readonly<Record<string, number>> | undefined
  /** Values on calls, likewise. */
  readonly steps?: Verdict['steps'] | undefined
  readonly evidence?: string | undefined
  /** Name of the token under which it is given. */
  readonly token?: string | undefined
}

/**
 * Appends a verdict that supersedes the one in force and keeps its artifacts. A status or reward given late stands over
 * whatever verifiers say. Throws
 * `NOT_FOUND` for an unknown rollout or a call of another, `VERDICT_REFUSED` for what is no verdict, and `STORE_*`.
 */
export async function appendLate(
  store: { readonly catalogue: Store['catalogue']; readonly recorder: Pick<Store['recorder'], 'sessions' | 'session'> },
  rolloutId: Id,
  given: LateVerdict,
  o: { readonly clock?: Clock; readonly newId?: IdMaker } = {},
): Promise<Verdict> {
  const rollout = await store.catalogue.rollout(rolloutId)
  if (rollout.end === null && (await store.catalogue.task(rollout.taskDigest)).environment !== 'none') {
    // Its own verifier comes at its end. What `serve` records has none, and may be scored while it goes on.
    throw refused('the rollout has not ended', 'Wait for its end.')
  }
  if (given.byPolicy !== undefined) await requirePolicies(store.recorder, rolloutId, given.byPolicy)
  const steps = given.steps ?? []
  if (steps.length > 0) await requireCalls(store.recorder, rolloutId, steps)
  const before = verdictInForce(rollout.verdicts)
  const verdict: Verdict = {
    ...numberOf(given, before),
    id: (o.newId ?? newId)(),
    rolloutId,
    at: (o.clock ?? systemClock).now(),
    components: { ...before?.components, ...given.components },
    steps: [...(before?.steps ?? []).filter(({ callId }) => !steps.some((one) => one.callId === callId)), ...steps],
    evidence: (given.evidence ?? before?.evidence ?? '').slice(-evidenceLimit),
    artifacts: before?.artifacts ?? [],
    verifier: { id: `late/${given.source}`, version: '1', sha256: sha256(`late\0${given.source}`) },
    trust: before?.trust ?? 'host',
    // What leaves status and reward as they are leaves them whose they are.
    by: before !== null && given.reward === undefined && given.status === undefined ? before.by : 'late',
    ...(given.token === undefined ? {} : { token: given.token }),
    costTokens: 0,
    supersedes: before?.id ?? null,
  }
  await store.catalogue.appendVerdict(verdict)
  return verdict
}

function numberOf({ reward, status, reason, byPolicy }: LateVerdict, before: Verdict | null): Outcome {
  if (reward === undefined && status === undefined && before !== null) {
    if (reason !== undefined) {
      throw refused(
        'a reason says why there is no number, and the one in force stays as it is',
        'Give `reward` null with it.',
      )
    }
    if (before.reward === null && byPolicy !== undefined)
      throw refused('there is no number, and policies are given some', 'Give `reward` with them.')
    if (before.reward === null) return { status: before.status, reward: null, reason: before.reason }
    return { status: before.status, reward: before.reward, ...present({ byPolicy: byPolicy ?? before.byPolicy }) }
  }
  const wanted = status ?? (typeof reward === 'number' ? 'scored' : 'unscorable')
  if (wanted === 'scored' || wanted === 'hacked') {
    if (typeof reward !== 'number' || !Number.isFinite(reward)) {
      throw refused(`${wanted} needs a reward that is a finite number`, 'Give one.')
    }
    if (reason !== undefined) {
      throw refused(
        'a reason says why there is no number, and there is one',
        'Say in `evidence` what speaks for a number.',
      )
    }
    return { status: wanted, reward, ...present({ byPolicy }) }
  }
  if (byPolicy !== undefined) throw refused(`${wanted} has no number, and policies are given some`, 'Leave them out.')
  if (typeof reward === 'number') throw refused(`${wanted} has no number`, 'Leave reward out, or use scored or hacked.')
  if (reason === undefined || reason === '') throw refused(`${wanted} needs a reason`, 'Say why there is no number.')
  return { status: wanted, reward: null, reason }
}

type Outcome =
  | {
      readonly status: 'scored' | 'hacked'
      readonly reward: number
      readonly byPolicy?: Readonly<Record<string, number>>
    }
  | { readonly status: Exclude<Verdict['status'], 'scored' | 'hacked'>; readonly reward: null; readonly reason: string }

/** Throws `POLICY_UNKNOWN` for a policy that no session of the rollout belongs to. */
async function requirePolicies(
  recorder: Pick<Store['recorder'], 'sessions'>,
  rolloutId: Id,
  byPolicy: Readonly<Record<string, number>>,
): Promise<void> {
  const sessions = await recorder.sessions({ rolloutId })
  const known = new Set(sessions.flatMap(({ policy: { name } }) => (name === undefined ? [] : [name])))
  for (const [policy, number] of Object.entries(byPolicy)) {
    if (!Number.isFinite(number)) throw refused(`the reward of policy ${policy} is not finite`, 'Give a number.')
    if (known.has(policy)) continue
    throw new PaddockError('POLICY_UNKNOWN', `The rollout ${rolloutId} has no session of policy ${policy}`, {
      data: { policy, known: [...known] },
      fix:
        known.size === 0 ? 'Leave it out: the rollout has one policy.' : `It has sessions of ${[...known].join(', ')}.`,
    })
  }
}

async function requireCalls(
  recorder: Pick<Store['recorder'], 'sessions' | 'session'>,
  rolloutId: Id,
  steps: Verdict['steps'],
): Promise<void> {
  const sessions = await recorder.sessions({ rolloutId })
  const logs = await Promise.all(sessions.map(({ id }) => recorder.session(id, { bodies: [] })))
  const known = new Set(logs.flatMap(({ calls }) => calls.map(({ intent }) => intent.id)))
  for (const { callId, value } of steps) {
    if (!known.has(callId)) throw new PaddockError('NOT_FOUND', `The rollout ${rolloutId} has no call ${callId}`)
    if (!Number.isFinite(value)) throw refused(`the value of call ${callId} is not finite`, 'Give a number.')
  }
}

function refused(what: string, fix: string): PaddockError {
  return new PaddockError('VERDICT_REFUSED', `No verdict can be appended: ${what}.`, { fix })
}
