import type { Gate } from './gate.ts'

/** A place behind a gate that its holder may give back for a while. */
export class Place implements Disposable {
  readonly #gate: Gate
  readonly #order: number
  #held: Disposable | null = null

  constructor(gate: Gate, order: number) {
    this.#gate = gate
    this.#order = order
  }

  /** Waits for a place, unless it is held. Rejects with the signal's reason on abort. */
  async take(signal: AbortSignal): Promise<void> {
    this.#held ??= await this.#gate.enter(signal, this.#order)
  }

  /** Lets the next one in. */
  [Symbol.dispose](): void {
    this.#held?.[Symbol.dispose]()
    this.#held = null
  }
}
