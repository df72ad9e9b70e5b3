/** Keeps the last bytes of a stream, and counts the rest. */
export class OutputTail {
  readonly #limit: number
  #chunks: Uint8Array[] = []
  #kept = 0
  #droppedBytes = 0

  constructor(limitBytes: number) {
    this.#limit = limitBytes
  }

  /** Takes the chunk over: its giver must not write into it again. */
  push(chunk: Uint8Array): void {
    this.#chunks.push(chunk)
    this.#kept += chunk.length
    for (let first = this.#chunks[0]; first !== undefined && this.#kept > this.#limit; first = this.#chunks[0]) {
      const excess = Math.min(this.#kept - this.#limit, first.length)
      if (excess === first.length) this.#chunks.shift()
      else this.#chunks[0] = first.subarray(excess)
      this.#kept -= excess
      this.#droppedBytes += excess
    }
  }

  get droppedBytes(): number {
    return this.#droppedBytes
  }

  bytes(): Uint8Array {
    return Buffer.concat(this.#chunks)
  }

  /** The last `limitBytes`, decoded; a character that was cut becomes a replacement character. */
  text(limitBytes = this.#limit): string {
    return new TextDecoder().decode(this.bytes().subarray(-limitBytes))
  }
}
