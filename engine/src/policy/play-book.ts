import { instructionDigest } from './plays.ts'
import type { PromptTurn } from '../chat/prompt-view.ts'
import type { Play } from './plays.ts'

/** Texts with more lines than this are not searched for an instruction known by its digest only. */
const MAX_DIGEST_LINES = 120
const DIGEST_CACHE = 512

/** The plays by instruction, and the search for the one that a prompt is about. */
export class PlayBook {
  readonly #plays = new Map<string, Play>()
  readonly #digestHits = new Map<string, string | null>()

  /** Adds or replaces the play of its instruction. */
  put(play: Play): void {
    this.#plays.set(play.instructionSha256, play)
    this.#digestHits.clear()
  }

  get(instructionSha256: string): Play | undefined {
    return this.#plays.get(instructionSha256)
  }

  clear(): void {
    this.#plays.clear()
    this.#digestHits.clear()
  }

  list(): readonly Play[] {
    return [...this.#plays.values()]
  }

  /**
   * The play of the last user turn that contains an instruction, with that turn's place. Of several instructions in
   * one turn the longest wins. A harness may put anything around the instruction.
   */
  find(turns: readonly PromptTurn[]): { play: Play; turn: number } | undefined {
    for (let at = turns.length - 1; at >= 0; at--) {
      const turn = turns[at]
      if (turn?.role !== 'user') continue
      const play = this.#inText(turn.text)
      if (play !== undefined) return { play, turn: at }
    }
    return undefined
  }

  #inText(text: string): Play | undefined {
    let best: Play | undefined
    let bestLength = 0
    let anonymous = false
    for (const play of this.#plays.values()) {
      const wanted = play.instruction?.trim()
      if (wanted === undefined) anonymous = true
      else if (wanted.length > bestLength && text.includes(wanted)) {
        best = play
        bestLength = wanted.length
      }
    }
    return best ?? (anonymous ? this.#byDigest(text) : undefined)
  }

  #byDigest(text: string): Play | undefined {
    const key = instructionDigest(text)
    const known = this.#digestHits.get(key)
    if (known !== undefined) return known === null ? undefined : this.#plays.get(known)
    const found = this.#digestOfSomeLines(text)
    if (this.#digestHits.size >= DIGEST_CACHE) this.#digestHits.clear()
    this.#digestHits.set(key, found ?? null)
    return found === undefined ? undefined : this.#plays.get(found)
  }

  /** Every run of whole lines, longest first, with and without the newline that instruction files end in. */
  #digestOfSomeLines(text: string): string | undefined {
    const lines = text.split('\n')
    if (lines.length > MAX_DIGEST_LINES) return undefined
    for (let length = lines.length; length > 0; length--) {
      for (let from = 0; from + length <= lines.length; from++) {
        const part = lines.slice(from, from + length).join('\n')
        for (const variant of [part, `${part}\n`, part.trim()]) {
          const digest = instructionDigest(variant)
          if (this.#plays.has(digest)) return digest
        }
      }
    }
    return undefined
  }
}
