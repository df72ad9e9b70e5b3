import { PaddockError } from '../../core/index.ts'
import type { TaskOf } from '../define.ts'
import type { Corpus } from './corpus/index.ts'
import type { SearchData } from './data.ts'
import { embeddingsOf } from './load.ts'
import { type DenseIndex, openDense } from './retrieval/index.ts'

/** The vectors that this process has opened, each once: rollouts share them. What failed is tried again. */
export class DenseCache {
  readonly #environment: Readonly<Record<string, string | undefined>>
  readonly #open = new Map<string, Promise<DenseIndex>>()
  // One rollout that gives up must not take the vectors from the others.
  readonly #never = new AbortController()

  constructor(environment: Readonly<Record<string, string | undefined>>) {
    this.#environment = environment
  }

  /** Null for a task without search by meaning. Throws `TASK_INVALID`, `EMBEDDINGS_FAILED`. */
  async open({ data, source }: TaskOf<SearchData>, corpus: Corpus): Promise<DenseIndex | null> {
    const { dense } = data.search
    if (dense === undefined) return null
    const key = JSON.stringify([corpus.directory, dense, source])
    const found = this.#open.get(key)
    if (found !== undefined) return found
    const opening = this.#start(source, corpus, dense).catch((error: unknown) => {
      this.#open.delete(key)
      throw error
    })
    this.#open.set(key, opening)
    return opening
  }

  async #start(source: string, corpus: Corpus, dense: NonNullable<SearchData['search']['dense']>): Promise<DenseIndex> {
    const server = await embeddingsOf(source, this.#environment)
    if (server === null || server.model !== dense.model) {
      throw new PaddockError(
        'TASK_INVALID',
        `${source}/search.toml has no search.dense with model ${dense.model} any more`,
      )
    }
    return openDense(corpus, server, dense, this.#never.signal)
  }
}
