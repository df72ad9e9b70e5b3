/** Follows one JSON value through text that arrives in pieces, and says where it ends. */
export class JsonSpan {
  #depth = 0
  #inString = false
  #escaped = false
  #started = false
  #bare = false
  #done = false

  /** True once the value is whole. */
  get done(): boolean {
    return this.#done
  }

  /** How many characters of `text` belong to the value. */
  take(text: string): number {
    for (let at = 0; at < text.length; at++) {
      const char = text[at] ?? ''
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false
        else if (char === '\\') this.#escaped = true
        else if (char === '"') {
          this.#inString = false
          if (this.#depth === 0) return this.#finish(at + 1)
        }
      } else if (char === '"') {
        this.#inString = true
      } else if (char === '{' || char === '[') {
        this.#depth++
      } else if (char === '}' || char === ']') {
        if (this.#depth === 0) return this.#finish(at)
        this.#depth--
        if (this.#depth === 0) return this.#finish(at + 1)
      } else if (this.#depth === 0 && this.#started && this.#bare && /[\s,;]/.test(char)) {
        return this.#finish(at)
      }
      if (!this.#started && !/\s/.test(char)) {
        this.#started = true
        this.#bare = !'"{['.includes(char)
      }
    }
    return text.length
  }

  #finish(length: number): number {
    this.#done = true
    return length
  }
}
