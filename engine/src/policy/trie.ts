/** One possible answer: its ids, terminator included, and a logit that may change while it is being said. */
export interface AnswerCandidate {
  readonly ids: Int32Array
  /** Read at each token, so that a weight update takes effect in the middle of an answer. */
  readonly logit: () => number
  readonly name: string
}

/** A next token and its probability before temperature and truncation. */
export interface NextToken {
  readonly id: number
  readonly probability: number
}

/**
 * A walk down the trie that the candidates' ids form: at each node a next token has the softmax mass of the candidates
 * behind it, `probability = mass(child) / mass(node)`. A token that all agree on has probability one.
 */
export class TrieWalk {
  #alive: readonly AnswerCandidate[]
  #depth: number

  /** `depth`: ids that are part of the prompt already (a continued or resubmitted answer). */
  constructor(candidates: readonly AnswerCandidate[], depth = 0) {
    this.#alive = candidates
    this.#depth = depth
  }

  /** The distribution over the next token, most likely first; empty at the end of every candidate. */
  next(): NextToken[] {
    const single = this.#alive.length === 1 ? this.#alive[0] : undefined
    if (single !== undefined) {
      const id = single.ids[this.#depth]
      return id === undefined ? [] : [{ id, probability: 1 }]
    }
    const top = Math.max(...this.#alive.map((candidate) => candidate.logit()))
    const masses = new Map<number, number>()
    let total = 0
    for (const candidate of this.#alive) {
      const id = candidate.ids[this.#depth]
      if (id === undefined) continue
      const mass = Math.exp(candidate.logit() - top)
      masses.set(id, (masses.get(id) ?? 0) + mass)
      total += mass
    }
    return [...masses]
      .map(([id, mass]) => ({ id, probability: mass / total }))
      .toSorted((a, b) => b.probability - a.probability || a.id - b.id)
  }

  /** Takes one token; candidates that go elsewhere are out. */
  advance(id: number): void {
    if (this.#alive.length > 1) this.#alive = this.#alive.filter((candidate) => candidate.ids[this.#depth] === id)
    this.#depth++
  }

  /** Names of the candidates that the tokens so far still allow. */
  get names(): string[] {
    return this.#alive.map((candidate) => candidate.name)
  }
}
