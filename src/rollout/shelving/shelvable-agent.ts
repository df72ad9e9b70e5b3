import type { EventBody, Id } from '../../core/index.ts'
import type { Proxy } from '../../proxy/index.ts'
import type { Box } from '../../sandbox/index.ts'
import type { AgentClock } from '../agent-clock.ts'
import type { Place } from '../place.ts'

/** `resuming`: it goes on as soon as there is a place for it. */
export type ShelvedState = 'working' | 'shelved' | 'resuming'

/** For what it is shelved: somebody asked for it, or the weights are being moved. It goes on when both have let it go. */
export type ShelvedFor = 'request' | 'update'

/** What becomes of half-done rollouts at an update of the weights. */
export type AtWeightUpdate = 'continue' | 'shelve'

/** What an agent is made of, as far as it can be made to stand still. */
export interface ShelvableParts {
  readonly runId: Id
  readonly sessionId: Id
  readonly proxy: Pick<Proxy, 'shelveSession' | 'resumeSession' | 'canShelve'>
  readonly box: Pick<Box, 'freeze' | 'thaw'> | null
  readonly agentClock: Pick<AgentClock, 'hold'>
  /** Given back while it is shelved by request; taken again in this order. */
  readonly places: readonly Place[]
  readonly atWeightUpdate: AtWeightUpdate
  /** Its job no longer keeps another one from beginning. */
  readonly leave: () => void
  /** Of the rollout: what is shelved stands in nobody's way when it ends. */
  readonly signal: AbortSignal
  /** Resolves when it is durable: what is answered as shelved is told after a kill too. */
  readonly write: (event: EventBody) => Promise<void>
}

/**
 * An agent at work that can be put aside and gone on with: its calls wait, its box and its clock stand still. Its place is
 * another's where somebody asked for it; over an update it keeps it, since whoever took it could not ask for anything either.
 */
export class ShelvableAgent implements Disposable {
  state: ShelvedState = 'working'
  readonly #parts: ShelvableParts
  #clock: Disposable | null = null
  /** Ends the wait for a place. */
  #waiting: AbortController | null = null
  #turn: Promise<unknown> = Promise.resolve()
  #over = false
  readonly #for = new Set<ShelvedFor>()

  constructor(parts: ShelvableParts) {
    this.#parts = parts
    parts.signal.addEventListener('abort', this.#aborted, { once: true })
  }

  get runId(): Id {
    return this.#parts.runId
  }

  get atWeightUpdate(): AtWeightUpdate {
    return this.#parts.atWeightUpdate
  }

  /** Nothing where it is shelved for this already. Rejects with what kept its box from standing still; it goes on then. */
  shelve(why: string): Promise<void> {
    this.#waiting?.abort(new Error('it is shelved again'))
    return this.#inTurn(() => this.#shelve('request', why))
  }

  /**
   * Resolves with whether it stands still for the update. One that is shelved or not at work is left as it is, and so is one
   * with an answer under way that cannot be ended: the mode of the update is for that.
   */
  shelveForUpdate(why: string): Promise<boolean> {
    return this.#inTurn(async () => {
      if (this.state !== 'working' || this.#over || !this.#parts.proxy.canShelve(this.#parts.sessionId)) return false
      await this.#shelve('update', why)
      return this.#for.has('update')
    })
  }

  /** It goes on once it has its places, and nothing else holds it; nothing where it is at work. */
  resume(what: ShelvedFor = 'request'): void {
    if (!this.#for.delete(what) || this.#for.size > 0 || this.state !== 'shelved') return
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

  async #shelve(what: ShelvedFor, why: string): Promise<void> {
    if (this.#over) return
    if (this.state !== 'shelved') await this.#standStill(why)
    this.#for.add(what)
    if (what === 'update') return
    for (const place of this.#parts.places) place[Symbol.dispose]()
    this.#parts.leave()
  }

  async #standStill(why: string): Promise<void> {
    const { proxy, sessionId, box, agentClock, write, signal } = this.#parts
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
