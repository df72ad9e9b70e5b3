import { eachWordPlace, termOf } from '../analysis/index.ts'
import { encodeLength } from './lengths.ts'
import { type Segment, segmentCapacity } from './segment.ts'
import { WordTable } from './word-table.ts'

const stopped = -1

/**
 * Collects passages and turns them into a {@link Segment}: one (term, count) pair per passage and distinct term, in the
 * order of arrival, then one counting sort by term.
 */
export class SegmentBuilder {
  readonly #words = new WordTable()
  /** Term by word number, {@link stopped} for stop words. */
  #termOfWord = new Int32Array(1 << 12)
  readonly #terms = new Map<string, number>()
  readonly #lengths = new Uint8Array(segmentCapacity)
  readonly #ends = new Uint32Array(segmentCapacity)
  #pairTerms = new Uint32Array(1 << 12)
  #pairCounts = new Uint16Array(1 << 12)
  /** Where in the pairs of the current passage a term stands; valid when beyond the passage's start. */
  #places = new Float64Array(1 << 12).fill(-1)
  #pairs = 0
  #size = 0
  #totalTerms = 0

  get size(): number {
    return this.#size
  }

  get full(): boolean {
    return this.#size === segmentCapacity
  }

  /** Adds the next passage. The caller starts a new builder when this one is full. */
  add(text: string): void {
    const start = this.#pairs
    let length = 0
    eachWordPlace(text, (lower, from, to) => {
      const known = this.#words.size
      const word = this.#words.numberOf(lower, from, to)
      const term = word < known ? (this.#termOfWord[word] ?? stopped) : this.#learn(word, lower.slice(from, to))
      if (term === stopped) return
      length += 1
      const place = this.#places[term] ?? -1
      if (place >= start) {
        const count = this.#pairCounts[place] ?? 0
        if (count < 65_535) this.#pairCounts[place] = count + 1
        return
      }
      if (this.#pairs === this.#pairTerms.length) this.#growPairs()
      this.#places[term] = this.#pairs
      this.#pairTerms[this.#pairs] = term
      this.#pairCounts[this.#pairs] = 1
      this.#pairs += 1
    })
    this.#lengths[this.#size] = encodeLength(length)
    this.#totalTerms += length
    this.#ends[this.#size] = this.#pairs
    this.#size += 1
  }

  finish(): Segment {
    const offsets = new Uint32Array(this.#terms.size + 1)
    for (let pair = 0; pair < this.#pairs; pair += 1) {
      const next = (this.#pairTerms[pair] ?? 0) + 1
      offsets[next] = (offsets[next] ?? 0) + 1
    }
    for (let term = 1; term < offsets.length; term += 1) {
      offsets[term] = (offsets[term] ?? 0) + (offsets[term - 1] ?? 0)
    }
    const free = offsets.slice()
    const documents = new Uint16Array(this.#pairs)
    const counts = new Uint16Array(this.#pairs)
    let pair = 0
    for (let document = 0; document < this.#size; document += 1) {
      for (const end = this.#ends[document] ?? 0; pair < end; pair += 1) {
        const term = this.#pairTerms[pair] ?? 0
        const place = free[term] ?? 0
        documents[place] = document
        counts[place] = this.#pairCounts[pair] ?? 0
        free[term] = place + 1
      }
    }
    const { size: terms } = this.#terms
    return {
      size: this.#size,
      totalTerms: this.#totalTerms,
      lengths: this.#lengths.slice(0, this.#size),
      terms: this.#terms,
      offsets: offsets.subarray(0, terms + 1),
      documents,
      counts,
    }
  }

  #learn(word: number, letters: string): number {
    const text = termOf(letters)
    let term = stopped
    if (text !== null) {
      term = this.#terms.get(text) ?? this.#terms.size
      this.#terms.set(text, term)
      if (term >= this.#places.length) {
        const larger = new Float64Array(this.#places.length * 2).fill(-1)
        larger.set(this.#places)
        this.#places = larger
      }
    }
    if (word >= this.#termOfWord.length) {
      const larger = new Int32Array(this.#termOfWord.length * 2)
      larger.set(this.#termOfWord)
      this.#termOfWord = larger
    }
    this.#termOfWord[word] = term
    return term
  }

  #growPairs(): void {
    const terms = new Uint32Array(this.#pairTerms.length * 2)
    terms.set(this.#pairTerms)
    this.#pairTerms = terms
    const counts = new Uint16Array(terms.length)
    counts.set(this.#pairCounts)
    this.#pairCounts = counts
  }
}
