import type { Clock, EventBody, Id, IdMaker, Verdict } from '../core/index.ts'
import type { Recorder } from '../trajectory/index.ts'
import { EmptyResults } from './empty-results.ts'
import { type RolloutIdentity, RolloutSpans } from './rollout-spans.ts'

/** Writes one rollout's events into the log, in order, without making the work wait for each. */
export class RolloutLog {
  readonly rolloutId: Id
  sessionId: Id | null = null
  readonly emptyResults = new EmptyResults()
  readonly #recorder: Pick<Recorder, 'appendEvent'>
  readonly #clock: Clock
  readonly #newId: IdMaker
  readonly #spans: RolloutSpans
  readonly #onEvent: (body: EventBody) => void
  #pending: Promise<unknown>[] = []

  constructor(parts: {
    readonly rolloutId: Id
    readonly identity: RolloutIdentity
    readonly recorder: Pick<Recorder, 'appendEvent'>
    readonly clock: Clock
    readonly newId: IdMaker
    /** Told of each event as it is written. */
    readonly onEvent?: (body: EventBody) => void
  }) {
    this.rolloutId = parts.rolloutId
    this.#recorder = parts.recorder
    this.#clock = parts.clock
    this.#newId = parts.newId
    this.#onEvent = parts.onEvent ?? (() => undefined)
    this.#spans = new RolloutSpans(parts.rolloutId, parts.identity, parts.clock.now())
  }

  readonly emit = (body: EventBody): void => {
    // Told by settled(); without a handler here an early failure would end the process.
    this.write(body).catch(() => undefined)
  }

  /** As {@link emit}, for what is answered for: resolves when it is durable. */
  readonly write = (body: EventBody): Promise<void> => {
    const { rolloutId, sessionId } = this
    const event = { ...body, id: this.#newId(), at: this.#clock.now(), rolloutId, sessionId }
    this.#spans.event(body, event.at)
    this.#onEvent(body)
    this.emptyResults.note(body)
    const stored = this.#recorder.appendEvent(event)
    this.#pending.push(stored)
    return stored
  }

  /** For those who trace; the verdict itself is stored by the catalogue. */
  verdict(verdict: Verdict): void {
    this.#spans.verdict(verdict, this.#clock.now())
  }

  /** Resolves when every event so far is durable; throws `STORE_*` for the first that is not. */
  async settled(): Promise<void> {
    const pending = this.#pending
    this.#pending = []
    await Promise.all(pending)
  }
}
