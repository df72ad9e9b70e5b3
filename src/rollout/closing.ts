/** Time after which a closing step is left behind; what it holds is labelled, and the next sweep removes it. */
const stepMs = 60_000

/** What a rollout opened, closed in reverse order. A failing or hanging step does not stop the others. */
export class Closing {
  readonly #steps: { readonly what: string; readonly close: () => Promise<unknown> }[] = []

  add(what: string, close: () => Promise<unknown>): void {
    this.#steps.push({ what, close })
  }

  /** Closes everything once; a second call has nothing left to do. Resolves with one line per step that failed. */
  async run(): Promise<readonly string[]> {
    const failures: string[] = []
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await within(stepMs, step.close())
      } catch (error) {
        failures.push(`${step.what}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
    return failures
  }
}

async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`not closed after ${ms} ms`)), ms)
  try {
    await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
