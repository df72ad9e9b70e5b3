interface Waiter {
  readonly bytes: number
  readonly called: () => void
}

/** Lets in as many bytes at once as there is room for, in the order of asking. What is larger than the room goes in when it is empty. */
export class ByteGate {
  readonly #room: number
  readonly #waiting: Waiter[] = []
  #held = 0

  constructor(room: number) {
    this.#room = room
  }

  /** How many wait. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Resolves when there is room; disposing it gives that back. Rejects with the signal's reason on abort. */
  async enter(bytes: number, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted()
    if (this.#waiting.length > 0 || !this.#fits(bytes)) await this.#turn(bytes, signal)
    else this.#held += bytes
    let left = false
    return {
      [Symbol.dispose]: () => {
        if (left) return
        left = true
        this.#held -= bytes
        this.#callNext()
      },
    }
  }

  #fits(bytes: number): boolean {
    return this.#held === 0 || this.#held + bytes <= this.#room
  }

  /** Room is taken for whoever is called. */
  #callNext(): void {
    for (let next = this.#waiting[0]; next !== undefined && this.#fits(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift()
      this.#held += next.bytes
      next.called()
    }
  }

  #turn(bytes: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        bytes,
        called: () => {
          signal.removeEventListener('abort', aborted)
          resolve()
        },
      }
      const aborted = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1)
        reject(signal.reason)
        // Who is behind it may need less room.
        this.#callNext()
      }
      this.#waiting.push(waiter)
      signal.addEventListener('abort', aborted, { once: true })
    })
  }
}
