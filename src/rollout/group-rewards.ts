import { type Id, isPaddockError, sha256, type Task, type Verdict } from '../core/index.ts'
import type { Environment, GroupMember } from '../envs/index.ts'
import { unscored, type VerdictDraft } from '../reward/index.ts'
import type { GroupRecord } from '../trajectory/index.ts'
import type { RolloutSummary } from './contract.ts'
import type { RunParts } from './run-parts.ts'
import { storedArtifacts } from './work.ts'

/**
 * The rollouts of a group with the rewards that only a comparison among them can give, where the environment has such: a
 * verdict more for each member that has a number and no taint, which supersedes its own. A comparison that fails leaves its
 * members without a number (invariant I7). One that stands is made again only where a member came to it since. Throws
 * `STORE_*`; a cancelled run compares nothing, nor is a group compared of which a member is unverified.
 */
export async function groupRewarded(
  run: RunParts,
  { task, group }: { readonly task: Task; readonly group: GroupRecord },
  rollouts: readonly RolloutSummary[],
): Promise<readonly RolloutSummary[]> {
  const { environment } = run
  if (environment?.scoreGroup == null || run.signal.aborted) return rollouts
  if (rollouts.some(({ unverified }) => unverified)) return rollouts
  const members = await membersOf(run, environment, rollouts)
  if (members.length < 2 || members.every(({ compared }) => compared)) return rollouts
  const changed = new Map<string, Verdict>()
  const drafts = await draftsOf(run, environment, task, members)
  for (const [i, { rolloutId, verdict, inForce }] of members.entries()) {
    const draft = drafts[i]
    if (draft === undefined) continue
    const next: Verdict = {
      ...draft,
      artifacts: draft.artifacts.length > 0 ? draft.artifacts : verdict.artifacts,
      id: run.newId(),
      rolloutId,
      at: run.clock.now(),
      by: 'verifier',
      supersedes: inForce,
    }
    await run.store.catalogue.appendVerdict(next)
    changed.set(rolloutId, next)
  }
  return rollouts.map((one) =>
    one.groupId === group.id ? { ...one, verdict: changed.get(one.rolloutId) ?? one.verdict } : one,
  )
}

interface ComparedMember extends GroupMember {
  readonly inForce: Id
  /** Whether the verdict in force is one of a comparison. */
  readonly compared: boolean
}

async function membersOf(
  run: RunParts,
  environment: Environment,
  rollouts: readonly RolloutSummary[],
): Promise<readonly ComparedMember[]> {
  const last = rollouts.filter(({ retried, taints }) => !retried && taints.length === 0)
  const found = last
    .toSorted((a, b) => a.slot - b.slot)
    .map(async ({ rolloutId }): Promise<ComparedMember[]> => {
      const given = (await run.store.catalogue.rollout(rolloutId)).verdicts
      // What somebody said late is in force whatever is compared here.
      const verdicts = given.filter(({ by }) => by === 'verifier')
      const inForce = verdicts.at(-1)
      if (inForce === undefined) return []
      const verdict = verdicts.findLast(({ verifier }) => verifier.id !== groupVerifier(environment))
      if (verdict === undefined || verdict.reward === null) return []
      const artifacts = await storedArtifacts(run.store.blobs, verdict.artifacts)
      if (artifacts === null) return []
      return [{ rolloutId, verdict, artifacts, inForce: inForce.id, compared: inForce.id !== verdict.id }]
    })
  return (await Promise.all(found)).flat()
}

function groupVerifier({ name }: Environment): string {
  return `${name}/group`
}

async function draftsOf(
  run: RunParts,
  environment: Environment,
  task: Task,
  members: readonly GroupMember[],
): Promise<readonly VerdictDraft[]> {
  const { name, verifierVersion, scoreGroup } = environment
  const verifier = {
    id: groupVerifier(environment),
    version: verifierVersion,
    sha256: sha256(`${name}\0group\0${verifierVersion}`),
  }
  const failed = (status: 'infra_error' | 'unscorable', reason: string) =>
    members.map(({ verdict }) =>
      unscored(status, reason, { verifier, trust: verdict.trust, components: verdict.components }),
    )
  try {
    const drafts = (await scoreGroup?.({ task, members, signal: run.signal })) ?? []
    if (drafts.length === members.length) return drafts
    return failed(
      'unscorable',
      `The comparison of the group gave ${drafts.length} verdicts for ${members.length} rollouts.`,
    )
  } catch (error) {
    if (run.signal.aborted) return []
    const infra = isPaddockError(error) && error.family === 'infra'
    return failed(infra ? 'infra_error' : 'unscorable', `The comparison of the group failed: ${String(error)}`)
  }
}
