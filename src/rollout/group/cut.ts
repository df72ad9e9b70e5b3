import { type Id, type RolloutEnd, sha256 } from '../../core/index.ts'
import { scored, unscored, type VerdictDraft } from '../../reward/index.ts'
import { type CatalogueReader, cutOf, type GroupSpec, type RecorderReader } from '../../trajectory/index.ts'

interface CutRollout {
  readonly groupId: Id
  readonly slot: number
  readonly end: RolloutEnd
}

/** The verdict of a rollout whose group says what its cut is worth; null where the state is scored as it is. */
export function cutDraft(spec: GroupSpec, end: RolloutEnd): VerdictDraft | null {
  switch (cutOf(spec, end)) {
    case 'zero':
      return scored(0, factsOf(end))
    case 'null':
      return unscored('unscorable', `The rollout was cut: ${end}.`, factsOf(end))
    default:
      return null
  }
}

/** The same for a rollout by its place, as its round stands in the catalogue. */
export async function cutVerdict(
  catalogue: Pick<CatalogueReader, 'rounds'>,
  { groupId, slot, end }: CutRollout,
): Promise<VerdictDraft | null> {
  const spec = await specOf(catalogue, { groupId, slot })
  return spec === null ? null : cutDraft(spec, end)
}

/** The same for a rollout that somebody else scores: where no call was answered there is no state of the policy to score. */
export async function outsideCutVerdict(
  { catalogue, recorder }: { readonly catalogue: Pick<CatalogueReader, 'rounds'>; readonly recorder: RecorderReader },
  { rolloutId, ...cut }: CutRollout & { readonly rolloutId: Id },
): Promise<VerdictDraft | null> {
  const spec = await specOf(catalogue, cut)
  if (spec === null || cutOf(spec, cut.end) === null) return null
  const draft = cutDraft(spec, cut.end)
  if (draft !== null) return draft
  for (const { id, role } of await recorder.sessions({ rolloutId })) {
    if (role !== 'agent') continue
    const { calls } = await recorder.session(id, { bodies: [] })
    if (calls.some(({ commit }) => commit?.outcome.kind === 'complete')) return null
  }
  return unscored('unscorable', `The rollout was cut (${cut.end}) before a call was answered.`, factsOf(cut.end))
}

async function specOf(
  catalogue: Pick<CatalogueReader, 'rounds'>,
  { groupId, slot }: Pick<CutRollout, 'groupId' | 'slot'>,
): Promise<GroupSpec | null> {
  const rounds = await catalogue.rounds(groupId)
  return rounds.findLast(({ slots }) => slots.some((one) => one.slot === slot))?.spec ?? null
}

function factsOf(end: RolloutEnd) {
  return {
    verifier: { id: `cut/${end}`, version: '1', sha256: sha256(`cut\0${end}`) },
    trust: 'host',
    evidence: `The rollout was cut (${end}), and its group says what that is worth.`,
  } as const
}
