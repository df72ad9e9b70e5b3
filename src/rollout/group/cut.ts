import { type Id, type RolloutEnd, sha256 } from '../../core/index.ts'
import { scored, unscored, type VerdictDraft } from '../../reward/index.ts'
import type { CatalogueReader, GroupSpec } from '../../trajectory/index.ts'
import { cutOf } from './decide.ts'

/** The verdict of a rollout whose group says what its cut is worth; null where the state is scored as it is. */
export function cutDraft(spec: GroupSpec, end: RolloutEnd): VerdictDraft | null {
  const facts = {
    verifier: { id: `cut/${end}`, version: '1', sha256: sha256(`cut\0${end}`) },
    trust: 'host',
    evidence: `The rollout was cut (${end}), and its group says what that is worth.`,
  } as const
  switch (cutOf(spec, end)) {
    case 'zero':
      return scored(0, facts)
    case 'null':
      return unscored('unscorable', `The rollout was cut: ${end}.`, facts)
    default:
      return null
  }
}

/** The same for a rollout by its place, as its round stands in the catalogue. */
export async function cutVerdict(
  catalogue: Pick<CatalogueReader, 'rounds'>,
  { groupId, slot, end }: { readonly groupId: Id; readonly slot: number; readonly end: RolloutEnd },
): Promise<VerdictDraft | null> {
  const round = (await catalogue.rounds(groupId)).findLast(({ slots }) => slots.some((one) => one.slot === slot))
  return round === undefined ? null : cutDraft(round.spec, end)
}
