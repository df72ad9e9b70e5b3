import type { Id, Verdict } from '../../core/index.ts'
import type { RolloutSummary } from '../contract.ts'
import { appendLate } from '../late-verdict.ts'
import type { LibraryEvent } from '../library/index.ts'
import type { RunParts } from '../run-parts.ts'

/** A member of a link, when that is over. */
export interface LinkRollout {
  readonly rollout: RolloutSummary
  readonly member: number
  /** Null: it did not come to leave one. */
  readonly library: LibraryEvent | null
}

/**
 * What the files that a rollout wrote came to: the mean over later links of the share of their members, of those that went on from it, have a number and tell what they used, that
 * solved their task and read one of the files. Links without such members are in no mean; null: there is none.
 */
export function shareOf(links: readonly (readonly LinkRollout[])[], at: number, one: LinkRollout): number | null {
  const shares = links.slice(at + 1).flatMap((link) => {
    const heirs = link.flatMap(({ rollout: { verdict }, library }) => {
      const its = handedOn(links, library, one)
      if (its === null || verdict?.reward == null) return []
      if (verdict.status !== 'scored' || verdict.reward < 1) return [0]
      // Who solved it with unknown files neither earns nor costs anything.
      return library?.used == null ? [] : [library.used.some((path) => its.includes(path)) ? 1 : 0]
    })
    return heirs.length === 0 ? [] : [heirs.reduce<number>((sum, share) => sum + share, 0) / heirs.length]
  })
  return shares.length === 0 ? null : shares.reduce((sum, share) => sum + share, 0) / shares.length
}

/** What a rollout wrote of the library that another one began with: nobody in between wrote it anew. Null: that did not come from it. */
function handedOn(
  links: readonly (readonly LinkRollout[])[],
  library: LibraryEvent | null,
  of: LinkRollout,
): readonly string[] | null {
  const from = library?.from ?? null
  if (from === null) return null
  if (from === of.rollout.rolloutId) return of.library?.wrote ?? []
  const between = links.flat().find(({ rollout }) => rollout.rolloutId === from)
  const before = handedOn(links, between?.library ?? null, of)
  return before?.filter((path) => between?.library?.wrote.includes(path) !== true) ?? null
}

/** Who says so, in verdicts. */
const source = 'chain'

/**
 * Adds to the rewards of earlier links, as late verdicts with the component `chain_credit`. One without a number stays without, one that was
 * cheated gets nothing. Done before, it is not done again. Resolves with the verdicts by rollout.
 */
export async function creditEarlier(
  { store, clock, newId }: Pick<RunParts, 'store' | 'clock' | 'newId'>,
  links: readonly (readonly LinkRollout[])[],
  credit: number,
): Promise<ReadonlyMap<Id, Verdict>> {
  const given = new Map<Id, Verdict>()
  for (const [at, link] of links.entries()) {
    for (const one of link) {
      const { verdict, rolloutId } = one.rollout
      const share = shareOf(links, at, one)
      if (share === null || verdict?.status !== 'scored' || verdict.verifier.id === `late/${source}`) continue
      const more = credit * share
      const late = {
        source,
        reward: verdict.reward + more,
        byPolicy:
          verdict.byPolicy &&
          Object.fromEntries(Object.entries(verdict.byPolicy).map(([policy, reward]) => [policy, reward + more])),
        components: { chain_credit: share },
      }
      given.set(rolloutId, await appendLate(store, rolloutId, late, { clock, newId }))
    }
  }
  return given
}
