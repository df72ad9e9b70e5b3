import { type Id, PaddockError } from '../../core/index.ts'
import type { CatalogueReader } from '../contract/index.ts'

/** Throws `RECORDED_ELSEWHERE` for a run of another data directory on the same catalogue. */
export async function requireHere(catalogue: Pick<CatalogueReader, 'elsewhere'>, runId: Id): Promise<void> {
  const where = await catalogue.elsewhere(runId)
  if (where !== null) throw recordedElsewhere(runId, where)
}

/** The segments of a run are in the data directory that `where` names to people. */
export function recordedElsewhere(runId: Id, where: string): PaddockError {
  return new PaddockError('RECORDED_ELSEWHERE', `the run ${runId} is of ${where}, which has its segments`, {
    data: { runId, where },
  })
}
