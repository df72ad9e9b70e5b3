import { type Id, isPaddockError } from '../../core/index.ts'
import type { Store, StoreReader } from '../contract/index.ts'
import { packRollout } from './pack.ts'
import { takeInRollout } from './receive.ts'

export interface StoreTakenIn {
  /** Rollouts that were not here before. */
  readonly taken: number
  /** Those that were, as they are there. */
  readonly repeated: number
  /** Those that have not ended there: they are left. */
  readonly unfinished: number
  /** Those that are here with other content (labelled or judged since, or run here): they stay as they are. */
  readonly different: readonly Id[]
}

/**
 * Takes the finished rollouts of another data directory in, each whole: tokens, logprobs, bodies, events, verdicts, blobs. The same
 * directory again changes nothing and brings what has ended since. `by` is told with each. Throws `HANDIN_DAMAGED`, `STORE_CONFLICT`.
 */
export async function takeInStore(
  here: Pick<Store, 'recorder' | 'catalogue' | 'blobs'>,
  there: StoreReader,
  { by, signal }: { readonly by: string; readonly signal?: AbortSignal },
): Promise<StoreTakenIn> {
  let [taken, repeated, unfinished] = [0, 0, 0]
  const different: Id[] = []
  for (const { id: runId } of (await there.catalogue.runs()).toReversed()) {
    for (const { id, end } of await there.catalogue.rollouts({ runId })) {
      signal?.throwIfAborted()
      if (end === null) {
        unfinished += 1
        continue
      }
      const { bytes, digest } = await packRollout(there, id)
      try {
        if ((await takeInRollout(here, { bytes, digest, by })).repeated) repeated += 1
        else taken += 1
      } catch (error) {
        if (!isPaddockError(error) || error.code !== 'HANDIN_OTHER') throw error
        different.push(id)
      }
    }
  }
  return { taken, repeated, unfinished, different }
}
