import { type Clock, PaddockError } from '../../core/index.ts'
import type { UpstreamIds } from '../upstream.ts'
import type { FleetEvent, PauseElsewhere, PauseMode, PauseOrder, PauseOutcome } from './contract.ts'
import type { Generation, Replica } from './replica.ts'
import type { FleetRequest } from './request.ts'

/** An engine that was told to end a request and does not is cut off after this long. */
const abortGraceMs = 2000

interface PauseParts {
  readonly replicas: readonly Replica[]
  readonly clock: Clock
  readonly emit: (event: FleetEvent) => void
  readonly waited: (ids: UpstreamIds, waitedMs: number) => void
}

/**
 * The gate before the replicas. While it is closed new generations wait behind it, their harnesses kept by keep-alives; what
 * runs is waited for, frozen, or ended to be gone on with. Time spent here is no time of an agent.
 */
export class Pause {
  mode: PauseMode | null = null
  /** What runs stands still in every replica that serves. */
  isFrozen = false
  interruptedTotal = 0
  private readonly parts: PauseParts
  private readonly held = new Set<FleetRequest>()
  /** Sessions whose generations wait, whether or not the others do. */
  private readonly heldSessions = new Set<string>()
  private readonly frozen = new Set<Generation>()
  /** Replicas that were told to freeze and must be told to go on. */
  private readonly toThaw = new Set<Replica>()
  private closing = false
  private readonly leaving = new Set<(request: Generation) => void>()

  constructor(parts: PauseParts) {
    this.parts = parts
  }

  get waiting(): number {
    return this.held.size
  }

  /** True: the request waits, and is entered again when the pause ends. */
  hold(request: FleetRequest): boolean {
    if (this.mode === null && !this.heldSessions.has(request.ask.ids.sessionId)) return false
    request.heldSince ??= this.parts.clock.monotonic()
    this.held.add(request)
    return true
  }

  /** A request has ended, or is on its way to another replica. */
  left(request: FleetRequest): void {
    if (this.held.size > 0) this.held.delete(request)
    if (this.frozen.size > 0 && this.frozen.delete(request)) this.tellWaited(request)
    if (this.leaving.size > 0) for (const look of this.leaving) look(request)
  }

  remind(): void {
    for (const request of [...this.held, ...this.frozen]) request.remind()
  }

  /**
   * Closes the gate and does with what runs as the mode says. Throws `ENGINE_PAUSED` where it is closed already,
   * `PAUSE_TIMED_OUT` where running generations did not end in time; everything goes on then. `elsewhere`: another process has
   * frozen the engines, or not, and lets them go on; they are not asked.
   */
  async pause(order: PauseOrder, elsewhere: PauseElsewhere | null = null): Promise<PauseOutcome> {
    if (this.mode !== null) throw new PaddockError('ENGINE_PAUSED', `Generation is paused already, mode ${this.mode}.`)
    const { clock, emit } = this.parts
    const startedAt = clock.monotonic()
    this.mode = order.mode
    try {
      const running = this.running()
      const outcome = { interrupted: 0, drained: 0, kept: 0 }
      if (order.mode === 'keep') {
        outcome.kept = running.length
        await this.freeze(order, elsewhere)
      } else {
        const ended = this.ended(running, order.timeoutMs)
        ended.catch(() => {})
        if (order.mode === 'abort-resubmit') outcome.interrupted = await this.interrupt(running)
        outcome.drained = running.length - outcome.interrupted
        await ended
      }
      const durationMs = Math.round(clock.monotonic() - startedAt)
      emit({ what: 'paused', replica: null, detail: `${order.mode}, ${running.length} running` })
      return { mode: order.mode, ...outcome, durationMs }
    } catch (cause) {
      await this.resume()
      throw cause
    }
  }

  /** Opens the gate. Where it is open, engines that another process left frozen are told to go on. */
  async resume(): Promise<void> {
    if (this.closing) return
    if (this.mode === null) {
      await Promise.allSettled(this.parts.replicas.map(async (replica) => replica.engine.control?.thaw()))
      return
    }
    this.closing = true
    try {
      await Promise.allSettled([...this.toThaw].map(async (replica) => replica.engine.control?.thaw()))
    } finally {
      this.closing = false
      this.mode = null
      this.isFrozen = false
      this.toThaw.clear()
    }
    const frozen = [...this.frozen]
    this.frozen.clear()
    for (const request of frozen) this.tellWaited(request)
    const held = [...this.held].filter(({ ask }) => !this.heldSessions.has(ask.ids.sessionId))
    for (const request of held) this.letGo(request)
    this.parts.emit({ what: 'resumed', replica: null, detail: `${held.length} waited` })
  }

  /**
   * Generations of a session wait from now on, and what runs of it is ended to be gone on with; what cannot be gone on with runs to
   * its end. Gives how many were ended.
   */
  async holdSession(sessionId: string): Promise<number> {
    this.heldSessions.add(sessionId)
    // What is frozen where it stands goes on where it stands.
    const running = this.running().filter((one) => one.ask.ids.sessionId === sessionId && !this.frozen.has(one))
    const able = running.filter(({ ask }) => ask.terms.interrupted !== undefined)
    if (able.length === 0) return 0
    const ended = this.ended(able, 4 * abortGraceMs)
    ended.catch(() => {})
    await this.interrupt(able)
    await ended
    return able.length
  }

  /** Whether all that runs of a session can be ended to be gone on with. */
  canHold(sessionId: string): boolean {
    return this.running().every(({ ask }) => ask.ids.sessionId !== sessionId || ask.terms.interrupted !== undefined)
  }

  releaseSession(sessionId: string): void {
    if (!this.heldSessions.delete(sessionId) || this.mode !== null) return
    for (const request of this.held) if (request.ask.ids.sessionId === sessionId) this.letGo(request)
  }

  private letGo(request: FleetRequest): void {
    this.held.delete(request)
    this.tellWaited(request)
    request.enter()
  }

  private running(): Generation[] {
    return this.parts.replicas.flatMap((replica) => [...replica.running])
  }

  private tellWaited(request: Generation): void {
    if (request.heldSince === null) return
    const waitedMs = Math.round(this.parts.clock.monotonic() - request.heldSince)
    request.heldSince = null
    this.parts.waited(request.ask.ids, waitedMs)
  }

  /** Frozen where the engine can; elsewhere what runs goes on running while the weights change. */
  private async freeze({ cache }: PauseOrder, elsewhere: PauseElsewhere | null): Promise<void> {
    const now = this.parts.clock.monotonic()
    const serving = this.parts.replicas.filter(({ state }) => state !== 'ejected')
    const frozen = await Promise.all(
      serving.map(async (replica) => {
        const done = elsewhere === null ? await this.freezeAt(replica, cache) : elsewhere.frozen
        if (!done) return false
        for (const request of replica.running) {
          request.heldSince = now
          request.recomputed = cache === 'clear'
          this.frozen.add(request)
        }
        return true
      }),
    )
    this.isFrozen = frozen.every(Boolean)
  }

  private async freezeAt(replica: Replica, cache: PauseOrder['cache']): Promise<boolean> {
    this.toThaw.add(replica)
    const done = await replica.engine.control?.freeze(cache).catch(() => false)
    if (done !== true) this.toThaw.delete(replica)
    return done === true
  }

  /** Ends what can be gone on with; the engine says how far it came. Gives how many. */
  private async interrupt(running: readonly Generation[]): Promise<number> {
    const able = running.filter(({ ask }) => ask.terms.interrupted !== undefined)
    for (const request of able) request.interrupt()
    this.interruptedTotal += able.length
    await Promise.all(
      this.parts.replicas.map(async (replica) => {
        const here = able.filter((request) => request.replica === replica)
        if (here.length === 0) return
        const ids = here.map(({ ask }) => ask.ids.requestId ?? ask.ids.callId)
        const told = await replica.engine.control?.abort(ids).catch(() => false)
        const cut = (): void => {
          for (const request of here) if (replica.running.has(request)) request.cut()
        }
        if (told === true) setTimeout(cut, abortGraceMs).unref()
        else cut()
      }),
    )
    return able.length
  }

  /** Resolves when all of them have ended. */
  private ended(requests: readonly Generation[], timeoutMs: number): Promise<void> {
    const left = new Set(requests.filter((request) => request.replica?.running.has(request) === true))
    if (left.size === 0) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const done = (): void => {
        clearTimeout(timer)
        this.leaving.delete(look)
      }
      const look = (request: Generation): void => {
        left.delete(request)
        if (left.size > 0) return
        done()
        resolve()
      }
      const timer = setTimeout(() => {
        done()
        const problem = `${left.size} generations were still running after ${timeoutMs} ms; everything goes on as before.`
        reject(new PaddockError('PAUSE_TIMED_OUT', problem))
      }, timeoutMs)
      this.leaving.add(look)
    })
  }
}
