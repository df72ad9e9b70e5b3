import type { SqlCatalogue } from '../catalogue/index.ts'
import type { HandedIn } from '../contract/index.ts'

/** Writes what a job made, in the transaction that accepts its hand-in. */
export async function keep(catalogue: SqlCatalogue, { rolloutId, taints, verdict, end }: HandedIn): Promise<void> {
  for (const cause of taints) await catalogue.taint(rolloutId, cause)
  if (verdict !== null) await catalogue.appendVerdict(verdict)
  await catalogue.endRollout(rolloutId, end.at, end.end, end.detail)
}
