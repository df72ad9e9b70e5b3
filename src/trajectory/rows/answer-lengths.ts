import type { AnswerLengthShare } from '../rows-contract.ts'

/** Adds up sampled and trainable tokens by the length of their answer, in powers of two. */
export class AnswerLengths {
  readonly #found = new Map<number, { answers: number; sampled: number; trainable: number }>()

  constructor(shares: readonly AnswerLengthShare[] = []) {
    for (const { from, answers, sampled, trainable } of shares) this.#found.set(from, { answers, sampled, trainable })
  }

  /** An answer of `length` tokens, of which `trainable` train. */
  add(length: number, trainable: number): void {
    if (length === 0) return
    const found = this.#of(length)
    found.answers += 1
    found.sampled += length
    found.trainable += trainable
  }

  /** So many of an answer that was added train after all no more. */
  withdraw(length: number, trainable: number): void {
    if (trainable > 0) this.#of(length).trainable -= trainable
  }

  /** The shares, from the shortest answers on. */
  shares(): readonly AnswerLengthShare[] {
    return [...this.#found]
      .toSorted(([a], [b]) => a - b)
      .map(([from, counts]) => ({ from, to: 2 * from - 1, ...counts }))
  }

  #of(length: number): { answers: number; sampled: number; trainable: number } {
    const from = 2 ** Math.floor(Math.log2(length))
    const found = this.#found.get(from) ?? { answers: 0, sampled: 0, trainable: 0 }
    this.#found.set(from, found)
    return found
  }
}
