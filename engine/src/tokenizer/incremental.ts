import { StringDecoder } from 'node:string_decoder'
import type { Vocabulary } from './tokenizer.ts'

/**
 * Turns tokens into text one at a time: characters that span tokens are held until whole, as vLLM's incremental
 * detokenizer does, so that the parts always join to the decoded whole.
 */
export class IncrementalText {
  readonly #vocabulary: Vocabulary
  readonly #skipSpecial: boolean
  readonly #decoder = new StringDecoder('utf8')

  constructor(vocabulary: Vocabulary, options: { skipSpecial: boolean }) {
    this.#vocabulary = vocabulary
    this.#skipSpecial = options.skipSpecial
  }

  /** The text that `id` completes; empty while a character is still open. */
  push(id: number): string {
    if (this.#skipSpecial && this.#vocabulary.specialIds.has(id)) return ''
    return this.#decoder.write(Buffer.from(this.#vocabulary.bytesOf(id)))
  }

  /** What is still held, with U+FFFD for an unfinished character. */
  end(): string {
    return this.#decoder.end()
  }
}
