import type { Clock } from '../core/index.ts'

/** When a call heard from its engine and told its clients, in milliseconds of the monotonic clock. */
export class CallTimes {
  /** Milliseconds since 1970; null while no byte of the answer has left. */
  firstByteAt: number | null = null
  private readonly clock: Clock
  private readonly startedAt: number
  private heardAt: number
  private toldAt: number

  constructor(clock: Clock) {
    this.clock = clock
    this.startedAt = clock.monotonic()
    this.heardAt = this.startedAt
    this.toldAt = this.startedAt
  }

  heard(): void {
    this.heardAt = this.clock.monotonic()
  }

  /** What was heard last has left for a client. */
  told(): void {
    this.firstByteAt ??= this.clock.now()
    this.toldAt = this.heardAt
  }

  keptAlive(now: number): void {
    this.toldAt = now
  }

  /** When that was heard which was heard last, from the beginning of the call. */
  get atMs(): number {
    return Math.round(this.heardAt - this.startedAt)
  }

  silentMs(now: number): number {
    return now - this.heardAt
  }

  untoldMs(now: number): number {
    return now - this.toldAt
  }
}
