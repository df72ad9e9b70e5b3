import type { Clock, EventBody, Id, IdMaker } from '../core/index.ts'
import type { Recorder } from '../trajectory/index.ts'

/** Writes one rollout's events into the log, in order, without making the work wait for each. */
export class RolloutLog {
  readonly rolloutId: Id
  sessionId: Id | null = null
  readonly #recorder: Recorder
  readonly #clock: Clock
  readonly #newId: IdMaker
  #pending: Promise<unknown>[] = []

  constructor(parts: { rolloutId: Id; recorder: Recorder; clock: Clock; newId: IdMaker }) {
    this.rolloutId = parts.rolloutId
    this.#recorder = parts.recorder
    this.#clock = parts.clock
    this.#newId = parts.newId
  }

  readonly emit = (body: EventBody): void => {
    const { rolloutId, sessionId } = this
    const event = { ...body, id: this.#newId(), at: this.#clock.now(), rolloutId, sessionId }
    const stored = this.#recorder.appendEvent(event)
    // Told by settled(); without a handler here an early failure would end the process.
    stored.catch(() => undefined)
    this.#pending.push(stored)
  }

  /** Resolves when every event so far is durable; throws `STORE_*` for the first that is not. */
  async settled(): Promise<void> {
    const pending = this.#pending
    this.#pending = []
    await Promise.all(pending)
  }
}
