import { isPaddockError } from '../../core/index.ts'
import { requireHere } from '../catalogue/index.ts'
import type { CatalogueReader, RecorderReader } from '../contract/index.ts'

/** Reads of a log, which say where a rollout was recorded instead of that it has no sessions: `RECORDED_ELSEWHERE`. */
export function located(
  recorder: RecorderReader,
  catalogue: Pick<CatalogueReader, 'rollout' | 'elsewhere'>,
): RecorderReader {
  return {
    ...recorder,
    sessions: async (filter) => {
      const found = await recorder.sessions(filter)
      if (found.length > 0 || filter?.rolloutId == null) return found
      const runId = await catalogue.rollout(filter.rolloutId).then(
        (rollout) => rollout.runId,
        (error: unknown) => {
          if (isPaddockError(error) && error.code === 'NOT_FOUND') return null
          throw error
        },
      )
      if (runId !== null) await requireHere(catalogue, runId)
      return found
    },
  }
}
