import { PaddockError } from '../../core/index.ts'

/** So much of what comes behind all calls is with the engine at once. */
export const mostBehind = 4

/** Lets a bounded number of calls through at once; the others wait here, in order and counted. */
export class Admission {
  inFlight = 0
  private readonly waiting: (() => void)[] = []
  private readonly waitingBehind: (() => void)[] = []
  private behind = 0
  private readonly maxInFlight: number
  private readonly maxQueued: number

  constructor(maxInFlight: number, maxQueued: number) {
    this.maxInFlight = maxInFlight
    this.maxQueued = maxQueued
  }

  get queued(): number {
    return this.waiting.length
  }

  /**
   * Calls `start` when there is room, at once where there is; `start` owes a `leave`, also when it has nothing left to
   * do. Throws `PROXY_OVERLOADED`.
   */
  enter(start: () => void): void {
    if (this.inFlight < this.maxInFlight) {
      this.inFlight += 1
      start()
      return
    }
    if (this.waiting.length >= this.maxQueued) {
      throw new PaddockError('PROXY_OVERLOADED', `${this.waiting.length} calls are waiting already.`, {
        data: { maxInFlight: this.maxInFlight, maxQueued: this.maxQueued },
      })
    }
    this.waiting.push(start)
  }

  /**
   * The same for what must hold up no call: it waits while any call does, and never more than {@link mostBehind} of it are let through.
   * Owes a `leaveBehind`.
   */
  enterBehind(): Promise<void> {
    return new Promise((resolve) => {
      this.waitingBehind.push(resolve)
      this.letBehindIn()
    })
  }

  leaveBehind(): void {
    this.behind -= 1
    this.leave()
  }

  /** Gives a place back; the next one that waits takes it. */
  leave(): void {
    const next = this.waiting.shift()
    if (next !== undefined) {
      next()
      return
    }
    this.inFlight -= 1
    if (this.waitingBehind.length > 0) this.letBehindIn()
  }

  private letBehindIn(): void {
    if (this.waiting.length > 0 || this.inFlight >= this.maxInFlight || this.behind >= mostBehind) return
    const next = this.waitingBehind.shift()
    if (next === undefined) return
    this.behind += 1
    this.inFlight += 1
    next()
  }
}
