import { PaddockError } from '../../core/index.ts'

/** Lets a bounded number of calls through at once; the others wait here, in order and counted. */
export class Admission {
  inFlight = 0
  private readonly waiting: (() => void)[] = []
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

  /** Gives a place back; the next one that waits takes it. */
  leave(): void {
    const next = this.waiting.shift()
    if (next === undefined) this.inFlight -= 1
    else next()
  }
}
