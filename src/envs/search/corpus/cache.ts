import type { Hit } from './wire.ts'

/** The last answers by question, those under way included. What failed is asked again. */
export class HitCache {
  hits = 0
  misses = 0
  readonly #limit: number
  readonly #kept = new Map<string, Promise<readonly Hit[]>>()

  constructor(limit: number) {
    this.#limit = limit
  }

  get(key: string, ask: () => Promise<readonly Hit[]>): Promise<readonly Hit[]> {
    const found = this.#kept.get(key)
    if (found !== undefined) {
      this.hits += 1
      // A map keeps the order of insertion: what was used last goes to its end.
      this.#kept.delete(key)
      this.#kept.set(key, found)
      return found
    }
    this.misses += 1
    const asked = ask().catch((error: unknown) => {
      this.#kept.delete(key)
      throw error
    })
    this.#kept.set(key, asked)
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > this.#limit && oldest !== undefined) this.#kept.delete(oldest)
    return asked
  }
}
