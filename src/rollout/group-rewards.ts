import { isPaddockError, sha256, type Task, type Verdict } from '../core/index.ts'
import { type Environment, type GroupMember, unpackArtifact } from '../envs/index.ts'
import { unscored, type VerdictDraft } from '../reward/index.ts'
import type { GroupRecord } from '../trajectory/index.ts'
import type { RolloutSummary } from './contract.ts'
import type { RunParts } from './run-parts.ts'

/**
 * The rollouts of a run with the rewards that only a comparison within their groups can give, where the environment has
 * such: a verdict more for each member that has a number and no taint, which supersedes its own. A comparison that fails
 * leaves its members without a number (invariant I7). Throws `STORE_*`; a cancelled run compares nothing.
 */
export async function groupRewarded(
  run: RunParts,
  groups: readonly { readonly task: Task; readonly group: GroupRecord }[],
  rollouts: readonly RolloutSummary[],
): Promise<readonly RolloutSummary[]> {
  const { environment } = run
  if (environment?.scoreGroup == null || run.signal.aborted) return rollouts
  const changed = new Map<string, Verdict>()
  for (const { task, group } of groups) {
    const members = await membersOf(
      run,
      rollouts.filter((one) => one.groupId === group.id),
    )
    if (members.length < 2) continue
    const drafts = await draftsOf(run, environment, task, members)
    for (const [i, { rolloutId, verdict }] of members.entries()) {
      const draft = drafts[i]
      if (draft === undefined) continue
      const next: Verdict = {
        ...draft,
        artifacts: draft.artifacts.length > 0 ? draft.artifacts : verdict.artifacts,
        id: run.newId(),
        rolloutId,
        at: run.clock.now(),
        by: 'verifier',
        supersedes: verdict.id,
      }
      await run.store.catalogue.appendVerdict(next)
      changed.set(rolloutId, next)
    }
  }
  return rollouts.map((one) => ({ ...one, verdict: changed.get(one.rolloutId) ?? one.verdict }))
}

async function membersOf(run: RunParts, rollouts: readonly RolloutSummary[]): Promise<readonly GroupMember[]> {
  const last = rollouts.filter(({ retried, taints }) => !retried && taints.length === 0)
  const found = last
    .toSorted((a, b) => a.slot - b.slot)
    .map(async ({ rolloutId, verdict }): Promise<GroupMember[]> => {
      if (verdict === null || verdict.reward === null) return []
      const items = verdict.artifacts.map(async ({ path, sha256: digest }) =>
        unpackArtifact({ path, data: await run.store.blobs.get(digest) }),
      )
      return [{ rolloutId, verdict, artifacts: { items: await Promise.all(items) } }]
    })
  return (await Promise.all(found)).flat()
}

async function draftsOf(
  run: RunParts,
  { name, verifierVersion, scoreGroup }: Environment,
  task: Task,
  members: readonly GroupMember[],
): Promise<readonly VerdictDraft[]> {
  const verifier = {
    id: `${name}/group`,
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
