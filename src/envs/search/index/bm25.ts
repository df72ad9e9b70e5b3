import { termsOf } from '../analysis/index.ts'
import { decodeLength } from './lengths.ts'
import { type Segment, segmentCapacity } from './segment.ts'

/** BM25's two numbers. */
export interface Bm25Parameters {
  readonly k1: number
  readonly b: number
}

/** Anserini's and Pyserini's defaults (`SearchCollection.java`, `LuceneSearcher.set_bm25`), tuned for passages. */
export const defaultBm25: Bm25Parameters = { k1: 0.9, b: 0.4 }

/** One passage of a ranking. */
export interface Ranked {
  /** Number of the passage: its place in the corpus, from 0. */
  readonly document: number
  /** Single precision, as Lucene scores. */
  readonly score: number
}

/**
 * BM25 as Lucene 8 and later computes it (`BM25Similarity`): per query term `idf * tf / (tf + k1 * (1 - b + b * dl / avgdl))`
 * with `idf = ln(1 + (N - n + 0.5) / (n + 0.5))`, lengths in one lossy byte, a repeated query term counting as often as
 * it stands there, any term sufficing (OR). Equal scores are ranked by place in the corpus.
 */
export class Bm25Index {
  readonly size: number
  readonly #segments: readonly Segment[]
  readonly #averageLength: number
  readonly #scores = new Float64Array(segmentCapacity)

  constructor(segments: readonly Segment[]) {
    this.#segments = segments
    this.size = segments.reduce((sum, segment) => sum + segment.size, 0)
    const totalTerms = segments.reduce((sum, segment) => sum + segment.totalTerms, 0)
    this.#averageLength = this.size === 0 ? 1 : Math.max(totalTerms / this.size, Number.MIN_VALUE)
  }

  /** The best `topk` passages, best first. Empty when no term of the query is in the corpus. */
  search(query: string, topk: number, parameters: Bm25Parameters = defaultBm25): readonly Ranked[] {
    const weights = this.#weightsOf(query)
    const norms = this.#normsOf(parameters)
    const best = new Best(topk)
    let first = 0
    for (const segment of this.#segments) {
      const scores = this.#scores.subarray(0, segment.size).fill(0)
      let found = false
      for (const [term, weight] of weights) found = addTerm(segment, term, weight, norms, scores) || found
      if (found) best.offer(scores, first)
      first += segment.size
    }
    return best.ranking()
  }

  /** Distinct query terms in order of first appearance, each with idf times its count in the query. */
  #weightsOf(query: string): readonly (readonly [term: string, weight: number])[] {
    const counts = new Map<string, number>()
    for (const term of termsOf(query)) counts.set(term, (counts.get(term) ?? 0) + 1)
    return [...counts].map(([term, count]) => [term, count * this.#idf(term)])
  }

  #idf(term: string): number {
    let holders = 0
    for (const { terms, offsets } of this.#segments) {
      const number = terms.get(term)
      if (number !== undefined) holders += (offsets[number + 1] ?? 0) - (offsets[number] ?? 0)
    }
    return Math.log(1 + (this.size - holders + 0.5) / (holders + 0.5))
  }

  /** The part of the formula that depends on a passage's length, for each of the 256 lengths there can be. */
  #normsOf({ k1, b }: Bm25Parameters): Float64Array {
    return Float64Array.from(
      { length: 256 },
      (_, byte) => k1 * (1 - b + (b * decodeLength(byte)) / this.#averageLength),
    )
  }
}

// The whole cost of a query is in this loop.
function addTerm(segment: Segment, term: string, weight: number, norms: Float64Array, scores: Float64Array): boolean {
  const number = segment.terms.get(term)
  if (number === undefined) return false
  const { offsets, documents, counts, lengths } = segment
  const end = offsets[number + 1] ?? 0
  for (let at = offsets[number] ?? 0; at < end; at += 1) {
    const document = documents[at] ?? 0
    const count = counts[at] ?? 0
    const norm = norms[lengths[document] ?? 0] ?? 0
    scores[document] = (scores[document] ?? 0) + (weight * count) / (count + norm)
  }
  return true
}

/** The best few of many, kept sorted. */
class Best {
  readonly #kept: Ranked[] = []
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  offer(scores: Float64Array, first: number): void {
    const { length } = scores
    let floor = this.#floor()
    for (let document = 0; document < length; document += 1) {
      const score = Math.fround(scores[document] ?? 0)
      // Passages come in ascending order, so that an equal score ranks behind those that are kept.
      if (score <= floor) continue
      this.#insert({ document: first + document, score })
      floor = this.#floor()
    }
  }

  ranking(): readonly Ranked[] {
    return this.#kept
  }

  #floor(): number {
    return this.#kept.length < this.#limit ? 0 : (this.#kept.at(-1)?.score ?? Infinity)
  }

  #insert(one: Ranked): void {
    const place = this.#kept.findIndex((kept) => kept.score < one.score)
    this.#kept.splice(place === -1 ? this.#kept.length : place, 0, one)
    if (this.#kept.length > this.#limit) this.#kept.pop()
  }
}
