import { type Corpus, type CorpusSource, openCorpus } from './corpus/index.ts'

/**
 * The corpora that this process has opened, each once: rollouts share thread, index and cache. A corpus that failed to
 * open is tried again at the next use.
 */
export class CorpusCache implements AsyncDisposable {
  readonly #directory: string
  readonly #open = new Map<string, Promise<Corpus>>()

  /** `directory` is where built corpora are kept. */
  constructor(directory: string) {
    this.#directory = directory
  }

  /** Throws what {@link openCorpus} throws. */
  open(source: CorpusSource): Promise<Corpus> {
    const key = JSON.stringify(source)
    const found = this.#open.get(key)
    if (found !== undefined) return found
    const opening = openCorpus(this.#directory, source).catch((error: unknown) => {
      this.#open.delete(key)
      throw error
    })
    this.#open.set(key, opening)
    return opening
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const opened = await Promise.allSettled(this.#open.values())
    this.#open.clear()
    for (const one of opened) if (one.status === 'fulfilled') await one.value[Symbol.asyncDispose]()
  }
}
