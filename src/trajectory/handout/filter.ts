import type { CatalogueReader } from '../contract/index.ts'
import type { Selector } from '../rows-contract.ts'
import { keptBy } from '../select/index.ts'
import type { DraftRound } from './round.ts'

/**
 * A round of which only what a selector keeps trains. Members that it leaves out stay members: their rewards are in the
 * round's baseline, and rows of theirs are `filtered`. It sees usable members with the verdicts of the settled list, so the
 * same round is filtered alike whenever it is handed out. Throws `SELECTOR_INVALID`.
 */
export async function filteredRound(
  draft: DraftRound,
  selector: Selector,
  catalogue: Pick<CatalogueReader, 'group' | 'rollout'>,
): Promise<DraftRound> {
  const { settled, task, rows, members } = draft
  const usable = settled.members.filter(({ out }) => out === null)
  const rollouts = await Promise.all(
    usable.map(async ({ rolloutId, verdict }) => {
      const rollout = await catalogue.rollout(rolloutId)
      return { rollout, verdict: rollout.verdicts.find(({ id }) => id === verdict?.id) ?? null }
    }),
  )
  const { kept, detail } = keptBy(selector, { group: await catalogue.group(settled.groupId), task, rollouts })
  const left = new Set(usable.map(({ rolloutId }) => rolloutId).filter((id) => !kept.has(id)))
  return {
    ...draft,
    members: members.map((member) => ({ ...member, filtered: left.has(member.rollout_id) ? detail : null })),
    rows: rows.map((one) =>
      one.unusable === null && left.has(one.member.rolloutId) ? { ...one, unusable: 'filtered' as const } : one,
    ),
  }
}
