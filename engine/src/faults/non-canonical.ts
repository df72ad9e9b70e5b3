import type { Vocabulary } from '../tokenizer/tokenizer.ts'

/**
 * The same bytes in other tokens: every token of two bytes or more outside the added ones is cut in two, where both
 * halves exist. No tokenizer produces this for the text, a sampling model can.
 */
export function splitTokens(ids: Int32Array, vocabulary: Vocabulary): Int32Array {
  return Int32Array.from([...ids].flatMap((id) => vocabulary.splitOf(id) ?? [id]))
}
