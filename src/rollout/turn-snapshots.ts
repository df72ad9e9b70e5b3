import type { EventBody, Id } from '../core/index.ts'
import type { Box } from '../sandbox/index.ts'
import type { AgentClock } from './agent-clock.ts'
import { faultLine } from './judge-end.ts'

export interface TurnSnapshotsOptions {
  /** Every so many turns. */
  readonly every: number
  /** The last call of the agent that was answered; null before the first. */
  readonly lastCall: () => Id | null
  readonly emit: (event: EventBody) => void
}

/**
 * Keeps the box of an agent at its turns: after the tools of an answer have run, before the next call. The snapshots are
 * in the log, each with the call after which it was taken, and live as long as the sandbox provider unless they are kept.
 */
export class TurnSnapshots {
  readonly #o: TurnSnapshotsOptions
  #at: { readonly box: Box; readonly clock: AgentClock } | null = null
  #seen: Id | null = null
  #turn = 0
  #last: Promise<void> = Promise.resolve()

  constructor(options: TurnSnapshotsOptions) {
    this.#o = options
  }

  /** From now on turns are those of this box. The clock stands still while it is kept: that is not the agent's time. */
  open(box: Box, clock: AgentClock): void {
    this.#at = { box, clock }
  }

  /**
   * To be awaited where the agent waits for us: it goes on when its box is kept. One that cannot be kept is told as the
   * label `snapshot_failed`, and the rollout goes on. Never rejects.
   */
  atTurn(): Promise<void> {
    this.#last = this.#last.then(() => this.#keep())
    return this.#last
  }

  async #keep(): Promise<void> {
    if (this.#at === null) return
    const { box, clock } = this.#at
    try {
      const callId = this.#o.lastCall()
      if (callId === null || callId === this.#seen) return
      this.#seen = callId
      this.#turn += 1
      if (this.#turn % this.#o.every !== 0) return
      using _held = clock.hold()
      await box.snapshot({ callId })
    } catch (error) {
      this.#o.emit({ kind: 'label', name: 'snapshot_failed', value: faultLine(error) })
    }
  }
}
