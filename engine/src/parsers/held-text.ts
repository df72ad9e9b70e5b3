/**
 * Splits arriving text at the first of several markers, holding back an end that may still become one. The marker
 * itself is never released.
 */
export class MarkerSearch {
  readonly #markers: readonly string[]
  #held = ''

  constructor(markers: readonly string[]) {
    this.#markers = markers
  }

  /** Text before the marker, and, once found, the marker and what follows it. */
  push(text: string): { before: string; found?: { marker: string; after: string } } {
    const all = this.#held + text
    let best: { at: number; marker: string } | undefined
    for (const marker of this.#markers) {
      const at = all.indexOf(marker)
      if (at !== -1 && (best === undefined || at < best.at)) best = { at, marker }
    }
    if (best !== undefined) {
      this.#held = ''
      return {
        before: all.slice(0, best.at),
        found: { marker: best.marker, after: all.slice(best.at + best.marker.length) },
      }
    }
    const keep = Math.max(0, ...this.#markers.map((marker) => overlap(all, marker)))
    this.#held = all.slice(all.length - keep)
    return { before: all.slice(0, all.length - keep) }
  }

  /** Releases what was held. */
  end(): string {
    const held = this.#held
    this.#held = ''
    return held
  }
}

/** Length of the longest end of `text` that is a beginning of `marker`. */
function overlap(text: string, marker: string): number {
  for (let length = Math.min(text.length, marker.length - 1); length > 0; length--) {
    if (marker.startsWith(text.slice(text.length - length))) return length
  }
  return 0
}
