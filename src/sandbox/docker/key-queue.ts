/** Bytes to be sent, as an input stream that stays open until it is ended. */
export class KeyQueue implements AsyncIterable<Uint8Array> {
  readonly #waiting: Uint8Array[] = []
  #wake: (() => void) | null = null
  #ended = false

  push(keys: Uint8Array): void {
    if (this.#ended || keys.byteLength === 0) return
    this.#waiting.push(keys)
    this.#wake?.()
  }

  end(): void {
    this.#ended = true
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const next = this.#waiting.shift()
      if (next !== undefined) yield next
      else if (this.#ended) return
      else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }
}
