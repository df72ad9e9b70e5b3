import type { EventBody, Id } from '../core/index.ts'
import type { WaitingRequest } from '../proxy/index.ts'
import type { Box, KeepBounds } from '../sandbox/index.ts'
import type { AgentClock } from './agent-clock.ts'
import type { HarnessResume } from './harnesses/contract.ts'
import { faultLine } from './judge-end.ts'
import { LeftBehind } from './left-behind.ts'
import { untilWritten } from './transcript.ts'

export interface TurnSnapshotsOptions {
  /** Every so many turns. */
  readonly every: number
  /** Null: they go with their sandbox provider. */
  readonly keep: KeepBounds | null
  /** The last call of the conversation that was answered; null before the first. */
  readonly lastCall: () => Id | null
  readonly emit: (event: EventBody) => void
  /** Where the agent's program writes down what it asks; null: it does so before it asks. */
  readonly transcript: NonNullable<HarnessResume['transcript']> | null
}

/**
 * Keeps the box of an agent at its turns: when the next request of its conversation has come whole, so that its tools are done,
 * and nothing of the answer is there. The snapshots are in the log, each with the call after which it was taken and the
 * request that waited.
 */
export class TurnSnapshots {
  readonly #o: TurnSnapshotsOptions
  #at: { readonly box: Box; readonly clock: AgentClock } | null = null
  #seen: Id | null = null
  #turn = 0
  #last: Promise<void> = Promise.resolve()
  readonly #leftBehind = new LeftBehind()

  constructor(options: TurnSnapshotsOptions) {
    this.#o = options
  }

  /** From now on turns are those of this box. The clock stands still while it is kept: that is not the agent's time. */
  open(box: Box, clock: AgentClock): void {
    this.#at = { box, clock }
  }

  /**
   * To be awaited before a request is answered: the agent waits then. A box that cannot be kept is told as the label
   * `snapshot_failed`, and the rollout goes on. Never rejects.
   */
  atRequest(request: WaitingRequest): Promise<void> {
    this.#last = this.#last.then(() => this.#keep(request))
    return this.#last
  }

  async #keep({ callClass, digest, body }: WaitingRequest): Promise<void> {
    if (this.#at === null || callClass !== 'main') return
    const { box, clock } = this.#at
    const { every, keep, lastCall, emit, transcript } = this.#o
    try {
      const callId = lastCall()
      if (callId === null) {
        using _held = clock.hold()
        return await this.#leftBehind.begin(box)
      }
      if (callId === this.#seen) return
      this.#seen = callId
      this.#turn += 1
      if (this.#turn % every !== 0) return
      using _held = clock.hold()
      if (transcript !== null) await untilWritten(box, transcript, body)
      const without = await this.#leftBehind.since(box)
      await box.snapshot({ callId, request: digest, without, ...(keep === null ? {} : { keep }) })
    } catch (error) {
      emit({ kind: 'label', name: 'snapshot_failed', value: faultLine(error) })
    }
  }
}
