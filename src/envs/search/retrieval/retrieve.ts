import type { Corpus, Hit } from '../corpus/index.ts'
import type { SearchData } from '../data.ts'
import type { DenseIndex } from './dense.ts'
import { fuse } from './fuse.ts'
import { noiseDepth, withNoise } from './noise.ts'

/** What a task's search goes through. `dense` is null where the task has none. */
export interface Retrieval {
  readonly corpus: Corpus
  readonly dense: DenseIndex | null
}

/**
 * The passages that the tool shows for a query: words (BM25), fused with meaning where the task has an embedding model,
 * then spoilt where it asks for noise. Throws what corpus and embeddings throw.
 */
export async function retrieve(
  { corpus, dense }: Retrieval,
  data: SearchData,
  o: {
    readonly query: string
    readonly topk: number
    /** Share of spoilt places now; absent: the task's own. */
    readonly noise?: number | undefined
    readonly signal: AbortSignal
  },
): Promise<readonly Hit[]> {
  const { search, evidence } = data
  const share = o.noise ?? search.noise ?? 0
  const wanted = share === 0 ? o.topk : o.topk + noiseDepth
  const depth = search.dense === undefined ? wanted : Math.max(wanted, search.dense.depth)
  const byWords = await corpus.search(o.query, { topk: depth, parameters: { k1: search.k1, b: search.b } })
  const ranking =
    dense === null || search.dense === undefined
      ? byWords
      : fuse([byWords, await dense.search(o.query, depth, o.signal)], search.dense.rrfK, wanted)
  return withNoise(ranking, {
    query: o.query,
    share,
    topk: o.topk,
    spared: new Set(evidence),
    seed: search.curriculum?.seed ?? 0,
  })
}
