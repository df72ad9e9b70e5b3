import type { EventBody, Id } from '../../core/index.ts'
import type { Proxy } from '../../proxy/index.ts'
import type { Box } from '../../sandbox/index.ts'
import type { AgentClock } from '../agent-clock.ts'
import type { Place } from '../place.ts'

/** `resuming`: it goes on as soon as there is a place for it. */
export type ShelvedState = 'working' | 'shelved' | 'resuming'

/** What an agent is made of, as far as it can be made to stand still. */
export interface ShelvableParts {
  readonly runId: Id
  readonly sessionId: Id
  readonly proxy: Pick<Proxy, 'shelveSession' | 'resumeSession'>
  readonly box: Pick<Box, 'freeze' | 'thaw'> | null
  readonly agentClock: Pick<AgentClock, 'hold'>
  /** Given back while it is shelved; taken again in this order. */
  readonly places: readonly Place[]
  /** Its job no longer keeps another one from beginning. */
  readonly leave: () => void
  /** Of the rollout: what is shelved stands in nobody's way when it ends. */
  readonly signal: AbortSignal
  /** Resolves when it is durable: what is answered as shelved is told after a kill too. */
  readonly write: (event: EventBody) => Promise<void>
}

/** An agent at work that can be put aside and gone on with: its calls wait, its box and its clock stand still, its place is another's. */
export class ShelvableAgent implements Disposable {
  state: ShelvedState = 'working'
  readonly #parts: ShelvableParts
  #clock: Disposable | null = null
  /** Ends the wait for a place. */
  #waiting: AbortController | null = null
  #turn: Promise<unknown> = Promise.resolve()
  #over = false

  constructor(parts: ShelvableParts) {
    this.#parts = parts
    parts.signal.addEventListener('abort', this.#aborted, { once: true })
  }

  get runId(): Id {
    return this.#parts.runId
  }

  /** Nothing where it is shelved already. Rejects with what kept its box from standing still; it goes on then. */
  shelve(why: string): Promise<void> {
    this.#waiting?.abort(new Error('it is shelved again'))
    return this.#inTurn(() => this.#shelve(why))
  }

  /** It goes on once it has its places; nothing where it is at work. */
  resume(): void {
    if (this.state !== 'shelved') return
    this.state = 'resuming'
    const waiting = new AbortController()
    this.#waiting = waiting
    this.#inTurn(() => this.#goOn(waiting)).catch(() => {
      // A rollout that is over needs no place, and of a box that died its agent is told.
      if (this.state === 'resuming') this.state = 'shelved'
    })
  }

  /** The agent is done, or given up. */
  [Symbol.dispose](): void {
    this.#over = true
    this.#parts.signal.removeEventListener('abort', this.#aborted)
    this.#waiting?.abort(new Error('its agent is over'))
    this.#clock?.[Symbol.dispose]()
    this.#clock = null
  }

  async #shelve(why: string): Promise<void> {
    if (this.state === 'shelved' || this.#over) return
    const { proxy, sessionId, box, agentClock, places, leave, write, signal } = this.#parts
    signal.throwIfAborted()
    this.#clock = agentClock.hold()
    try {
      const interrupted = await proxy.shelveSession(sessionId)
      await box?.freeze()
      this.state = 'shelved'
      // Ended meanwhile, when nothing stood still yet.
      if (signal.aborted) this.#aborted()
      await write({ kind: 'shelve', phase: 'shelved', interrupted, detail: why })
    } catch (cause) {
      this.state = 'working'
      await box?.thaw().catch(() => undefined)
      this.#letGo()
      throw cause
    }
    for (const place of places) place[Symbol.dispose]()
    leave()
  }

  async #goOn(waiting: AbortController): Promise<void> {
    const { places, box, write, signal } = this.#parts
    const both = AbortSignal.any([signal, waiting.signal])
    try {
      for (const place of places) await place.take(both)
      both.throwIfAborted()
    } catch (cause) {
      for (const place of places) place[Symbol.dispose]()
      throw cause
    }
    await box?.thaw()
    await write({ kind: 'shelve', phase: 'resumed', interrupted: 0, detail: '' })
    this.state = 'working'
    this.#letGo()
  }

  #letGo(): void {
    this.#parts.proxy.resumeSession(this.#parts.sessionId)
    this.#clock?.[Symbol.dispose]()
    this.#clock = null
  }

  /** What ends it must reach its processes, and those stand still. */
  readonly #aborted = (): void => {
    if (this.state === 'working') return
    this.#parts.box?.thaw().catch(() => undefined)
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work)
    this.#turn = done.catch(() => undefined)
    return done
  }
}
