import type { Hit } from './wire.ts'

interface Entry {
  readonly answer: Promise<readonly Hit[]>
  /** UTF-16 units of its texts; 0 while it is under way. */
  size: number
}

/** How much is kept: answers, and UTF-16 units of their texts. */
export interface CacheLimits {
  readonly entries: number
  readonly units: number
}

/** The last answers by question, those under way included. What failed is asked again. */
export class HitCache {
  hits = 0
  misses = 0
  readonly #limits: CacheLimits
  readonly #kept = new Map<string, Entry>()
  #units = 0

  constructor(limits: CacheLimits) {
    this.#limits = limits
  }

  get(key: string, ask: () => Promise<readonly Hit[]>): Promise<readonly Hit[]> {
    const found = this.#kept.get(key)
    if (found !== undefined) {
      this.hits += 1
      // A map keeps the order of insertion: what was used last goes to its end.
      this.#kept.delete(key)
      this.#kept.set(key, found)
      return found.answer
    }
    this.misses += 1
    const entry: Entry = { answer: ask(), size: 0 }
    this.#kept.set(key, entry)
    entry.answer.then(
      (answer) => this.#weigh(key, entry, answer),
      () => this.#forget(key, entry),
    )
    this.#shrink()
    return entry.answer
  }

  #weigh(key: string, entry: Entry, answer: readonly Hit[]): void {
    if (this.#kept.get(key) !== entry) return
    entry.size = answer.reduce((sum, { title, text }) => sum + title.length + text.length, 0)
    this.#units += entry.size
    this.#shrink()
  }

  #shrink(): void {
    for (const [key, entry] of this.#kept) {
      if (this.#kept.size <= this.#limits.entries && this.#units <= this.#limits.units) return
      this.#forget(key, entry)
    }
  }

  #forget(key: string, entry: Entry): void {
    if (this.#kept.get(key) !== entry) return
    this.#kept.delete(key)
    this.#units -= entry.size
  }
}
