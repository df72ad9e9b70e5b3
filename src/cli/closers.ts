/** What has to be closed at the end, in reverse order. A step that fails does not keep the others from running. */
export class Closers implements AsyncDisposable {
  readonly #steps: (() => Promise<unknown>)[] = []

  add(close: () => Promise<unknown>): void {
    this.#steps.push(close)
  }

  /** Throws the first failure after every step has run. Idempotent. */
  async close(): Promise<void> {
    const failures: unknown[] = []
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}
