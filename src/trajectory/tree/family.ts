import type { Id } from '../../core/index.ts'
import type { CatalogueReader, RecorderReader, RolloutView } from '../contract/index.ts'
import { verdictInForce } from '../contract/index.ts'
import type { TreeMember } from './tree.ts'

/** The label of a rollout that goes on from another one: which. Written by whoever runs it. */
export const forkLabel = 'fork.rollout'

/** What a family is read from. */
export interface FamilySource {
  readonly catalogue: Pick<CatalogueReader, 'rollout' | 'rollouts'>
  readonly recorder: Pick<RecorderReader, 'sessions' | 'session'>
}

/** All rollouts that a rollout's tree has, parents before children: its first ancestor's descendants. Throws `NOT_FOUND`. */
export async function familyOf({ catalogue, recorder }: FamilySource, rolloutId: Id): Promise<readonly TreeMember[]> {
  const asked = await catalogue.rollout(rolloutId)
  // A fork is of its parent's task.
  const related = new Map((await catalogue.rollouts({ taskDigest: asked.taskDigest })).map((one) => [one.id, one]))
  const parentOf = ({ labels }: RolloutView): RolloutView | undefined => related.get(labels[forkLabel] ?? '')
  let root = asked
  for (let above = parentOf(root); above !== undefined; above = parentOf(root)) root = above
  const family = [root]
  for (const member of family) family.push(...[...related.values()].filter((one) => parentOf(one)?.id === member.id))
  const members: TreeMember[] = []
  for (const one of family) {
    const session = (await recorder.sessions({ rolloutId: one.id })).find(({ role }) => role === 'agent')
    // One that never came to its box has none.
    if (session === undefined) continue
    const log = await recorder.session(session.id, { bodies: [] })
    const verdict = verdictInForce(one.verdicts)
    const reward = one.taints.length > 0 || verdict?.status !== 'scored' ? null : verdict.reward
    members.push({ rolloutId: one.id, parent: parentOf(one)?.id ?? null, reward, log })
  }
  return members
}
