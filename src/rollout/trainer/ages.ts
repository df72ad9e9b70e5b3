import type { Id } from '../../core/index.ts'
import { type AnnouncedVersion, carriedSlots, type RoundView, type Store } from '../../trajectory/index.ts'

/** Reads how old what was sampled is. */
export interface AgeSource {
  /** Tokens of this policy count; null: there is one. */
  readonly policy: string | null
  readonly recorder: Pick<Store['recorder'], 'sessions' | 'session'>
  readonly catalogue: Pick<Store['catalogue'], 'groups' | 'rounds' | 'rollouts'>
  /** Whether a session has a call under way: its tokens will be of the weights that are live. */
  isSampling(sessionId: Id): boolean
}

/** The number of the oldest weights that sampled a token of a rollout; null where none did. 0: nobody announced them. */
async function oldestOf(
  { recorder, isSampling, policy }: Pick<AgeSource, 'recorder' | 'isSampling' | 'policy'>,
  rolloutId: Id,
  versions: readonly AnnouncedVersion[],
): Promise<number | null> {
  const numbers = new Map(versions.map(({ label, ordinal }) => [label, ordinal]))
  const live = versions.findLast(({ gone }) => !gone)?.ordinal ?? 0
  let oldest: number | null = null
  for (const { id, role, policy: own } of await recorder.sessions({ rolloutId })) {
    if (role !== 'agent' || (policy !== null && own.name !== policy)) continue
    if (isSampling(id)) oldest = Math.min(oldest ?? live, live)
    const { segments, calls } = await recorder.session(id, { bodies: [] })
    const before = new Map(calls.map(({ intent, commit }) => [intent.id, commit?.weightVersionBefore ?? null]))
    for (const { origin, policySpans, callId } of segments) {
      if (origin !== 'sampled') continue
      for (const { policy: by, mixing } of policySpans) {
        const first = mixing === 'mixed' && callId !== null ? before.get(callId) : by.weightVersion
        const number = numbers.get(first ?? '') ?? 0
        oldest = oldest === null ? number : Math.min(oldest, number)
      }
    }
  }
  return oldest
}

/** A member of a round that goes on or waits for its trainer, with the oldest weights that sampled it. */
export interface AgedMember {
  readonly groupId: Id
  readonly rolloutId: Id
  readonly oldest: number
  /** It goes on. */
  readonly running: boolean
}

/** Members that go on although their round has settled, and no further one has been opened. */
export async function carriedMembers(
  source: AgeSource,
  { groupIds, versions }: { readonly groupIds: readonly Id[]; readonly versions: readonly AnnouncedVersion[] },
): Promise<readonly AgedMember[]> {
  const found: AgedMember[] = []
  for (const groupId of groupIds) {
    const last = (await source.catalogue.rounds(groupId)).at(-1)
    const slots = last === undefined ? [] : carriedSlots(last).map(({ slot }) => slot)
    for (const { id, end } of await source.catalogue.rollouts({ groupId, slots })) {
      if (end !== null) continue
      const oldest = await oldestOf(source, id, versions)
      if (oldest !== null) found.push({ groupId, rolloutId: id, oldest, running: true })
    }
  }
  return found
}

/** All members of a run that a trainer may still train on. */
export async function agedMembers(
  source: AgeSource,
  { waiting, versions }: { readonly waiting: readonly RoundView[]; readonly versions: readonly AnnouncedVersion[] },
): Promise<readonly AgedMember[]> {
  const found: AgedMember[] = []
  for (const { groupId, settled, slots } of waiting) {
    const usable = settled?.members.flatMap(({ out, rolloutId }) => (out === null ? [rolloutId] : []))
    // A list may hold members of earlier rounds.
    const asked = (settled?.members ?? slots).map(({ slot }) => slot)
    for (const { id, end } of await source.catalogue.rollouts({ groupId, slots: asked })) {
      if (usable === undefined ? end === 'cancelled' || end === 'infra' : !usable.includes(id)) continue
      const oldest = await oldestOf(source, id, versions)
      if (oldest !== null) found.push({ groupId, rolloutId: id, oldest, running: end === null })
    }
  }
  return found
}
