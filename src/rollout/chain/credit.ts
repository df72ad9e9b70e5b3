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
 * What the files that a rollout wrote came to: the mean over later links of the share of their members, of those that went on from it and have a number, that
 * solved their task and read one of the files. Links without such members are in no mean; null: there is none.
 */
export function shareOf(links: readonly (readonly LinkRollout[])[], at: number, one: LinkRollout): number | null {
  const shares = links.slice(at + 1).flatMap((link) => {
    const heirs = link.filter((heir) => isHeir(links, heir, one) && heir.rollout.verdict?.reward != null)
    const solved = heirs.filter(({ rollout, library }) => {
      const usesIt = library?.used?.some((path) => one.library?.wrote.includes(path) === true) === true
      return usesIt && rollout.verdict?.status === 'scored' && rollout.verdict.reward >= 1
    })
    return heirs.length === 0 ? [] : [solved.length / heirs.length]
  })
  return shares.length === 0 ? null : shares.reduce((sum, share) => sum + share, 0) / shares.length
}

/** Whether the library of a rollout came from another one, directly or over others. */
function isHeir(links: readonly (readonly LinkRollout[])[], heir: LinkRollout, of: LinkRollout): boolean {
  const from = heir.library?.from ?? null
  if (from === null) return false
  if (from === of.rollout.rolloutId) return true
  const next = links.flat().find(({ rollout }) => rollout.rolloutId === from)
  return next !== undefined && isHeir(links, next, of)
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
      const late = {
        source,
        reward: verdict.reward + credit * share,
        components: { chain_credit: share },
      }
      given.set(rolloutId, await appendLate(store, rolloutId, late, { clock, newId }))
    }
  }
  return given
}
