/** Finds where in an exported row an answer of the journal lies, with everything that stood before it. */
import type { ExportedRow, TrueChoice } from './compare-read.ts'

/**
 * The first `length` tokens of `choice` lie in a row at `start`, and the row's tokens before `start` are exactly the
 * ids that the engine was given.
 */
export interface Place {
  readonly choice: TrueChoice
  readonly start: number
  readonly length: number
}

/** Prompts of the journal by length and hash, so that a row is walked once. */
export class PromptIndex {
  readonly #byLength = new Map<number, Map<number, TrueChoice[]>>()

  constructor(choices: readonly TrueChoice[]) {
    for (const choice of choices) {
      const { length } = choice.prompt
      let byHash = this.#byLength.get(length)
      if (byHash === undefined) this.#byLength.set(length, (byHash = new Map<number, TrueChoice[]>()))
      const hash = choice.prompt.reduce(mix, 0)
      const known = byHash.get(hash)
      if (known === undefined) byHash.set(hash, [choice])
      else known.push(choice)
    }
  }

  /** All places in a row, by position and then by journal order. */
  placesIn(row: ExportedRow): readonly Place[] {
    const places: Place[] = []
    let hash = 0
    for (let at = 0; at <= row.tokens.length; at += 1) {
      for (const choice of this.#byLength.get(at)?.get(hash) ?? []) {
        if (commonPrefix(row.tokens, choice.prompt) < at) continue
        const length = commonPrefix(choice.tokens, row.tokens, at)
        if (length > 0 || choice.tokens.length === 0) places.push({ choice, start: at, length })
      }
      hash = mix(hash, row.tokens[at] ?? 0)
    }
    return places
  }
}

/** Length of the common start of `whole` (from `offset`) and `part`. */
export function commonPrefix(part: readonly number[], whole: readonly number[], offset = 0): number {
  const most = Math.min(part.length, whole.length - offset)
  let length = 0
  while (length < most && part[length] === whole[length + offset]) length += 1
  return length
}

/** A polynomial hash below 2^45, exact in float64; equal hashes are verified token by token. */
function mix(hash: number, id: number): number {
  return (hash * 1_009 + id + 1) % 34_359_738_337
}
