/** Bytes for a command's stdin, written as they come. */
export class InputQueue implements AsyncIterable<Uint8Array> {
  readonly #pieces: Uint8Array[] = []
  #wake: (() => void) | null = null
  #over = false

  push(bytes: Uint8Array): void {
    this.#pieces.push(bytes)
    this.#wake?.()
  }

  end(): void {
    this.#over = true
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    while (!this.#over) {
      const next = this.#pieces.shift()
      if (next !== undefined) yield next
      else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }
}
