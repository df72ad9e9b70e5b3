/**
 * Watches text for stop strings. An end that may become one is held back (vLLM keeps `max(len(stop)) - 1` characters,
 * `v1/engine/detokenizer.py`); here exactly the characters that could still match.
 */
export class StopStrings {
  readonly #stops: readonly string[]
  readonly #include: boolean
  #held = ''

  constructor(stops: readonly string[], include: boolean) {
    this.#stops = stops
    this.#include = include
  }

  /** The text that may be shown, and the stop string that ended it. */
  push(text: string): { text: string; stopped?: string } {
    if (this.#stops.length === 0) return { text }
    const all = this.#held + text
    let best: { at: number; stop: string } | undefined
    for (const stop of this.#stops) {
      const at = all.indexOf(stop)
      if (at !== -1 && (best === undefined || at < best.at)) best = { at, stop }
    }
    if (best !== undefined) {
      this.#held = ''
      return { text: all.slice(0, best.at + (this.#include ? best.stop.length : 0)), stopped: best.stop }
    }
    let keep = 0
    for (const stop of this.#stops) {
      for (let length = Math.min(all.length, stop.length - 1); length > keep; length--) {
        if (stop.startsWith(all.slice(all.length - length))) keep = length
      }
    }
    this.#held = all.slice(all.length - keep)
    return { text: all.slice(0, all.length - keep) }
  }

  /** Releases what was held. */
  end(): string {
    const held = this.#held
    this.#held = ''
    return held
  }
}
