import { instructionDigest } from './scripts.ts'
import type { PromptTurn } from '../chat/prompt-view.ts'
import type { Script } from './scripts.ts'

/** Texts with more lines than this are not searched for an instruction known by its digest only. */
const MAX_DIGEST_LINES = 120
const DIGEST_CACHE = 512

/** The scripts by instruction, and the search for the one that a prompt is about. */
export class ScriptBook {
  readonly #scripts = new Map<string, Script>()
  readonly #digestHits = new Map<string, string | null>()

  /** Adds or replaces the script of its instruction. */
  put(script: Script): void {
    this.#scripts.set(script.instructionSha256, script)
    this.#digestHits.clear()
  }

  get(instructionSha256: string): Script | undefined {
    return this.#scripts.get(instructionSha256)
  }

  clear(): void {
    this.#scripts.clear()
    this.#digestHits.clear()
  }

  list(): readonly Script[] {
    return [...this.#scripts.values()]
  }

  /**
   * The script of the last user turn that contains an instruction, with that turn's place. Of several instructions in
   * one turn the longest wins. A harness may put anything around the instruction.
   */
  find(turns: readonly PromptTurn[]): { script: Script; turn: number } | undefined {
    for (let at = turns.length - 1; at >= 0; at--) {
      const turn = turns[at]
      if (turn?.role !== 'user') continue
      const script = this.#inText(turn.text)
      if (script !== undefined) return { script, turn: at }
    }
    return undefined
  }

  #inText(text: string): Script | undefined {
    let best: Script | undefined
    let bestLength = 0
    let anonymous = false
    for (const script of this.#scripts.values()) {
      const wanted = script.instruction?.trim()
      if (wanted === undefined) anonymous = true
      else if (wanted.length > bestLength && text.includes(wanted)) {
        best = script
        bestLength = wanted.length
      }
    }
    return best ?? (anonymous ? this.#byDigest(text) : undefined)
  }

  #byDigest(text: string): Script | undefined {
    const key = instructionDigest(text)
    const known = this.#digestHits.get(key)
    if (known !== undefined) return known === null ? undefined : this.#scripts.get(known)
    const found = this.#digestOfSomeLines(text)
    if (this.#digestHits.size >= DIGEST_CACHE) this.#digestHits.clear()
    this.#digestHits.set(key, found ?? null)
    return found === undefined ? undefined : this.#scripts.get(found)
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
          if (this.#scripts.has(digest)) return digest
        }
      }
    }
    return undefined
  }
}
