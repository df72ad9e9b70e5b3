import { setTimeout } from 'node:timers/promises'
import type { Id } from '../../core/index.ts'
import type { FollowWeights, NodeSaid, ToldWeights } from '../../rollout/index.ts'
import type { NodeClient } from './client.ts'

export interface WeightsLoopParts {
  readonly client: Pick<NodeClient, 'weights'>
  readonly follow: Pick<FollowWeights, 'apply'>
  /** The session that asks, and others of this node whose work would still be taken. */
  readonly sessions: () => { readonly now: Id; readonly also: readonly Id[] }
  /** Something else was told and is done. */
  readonly onDone?: () => void
}

/** After a question that the coordinator refused: its session may be over, and the next one asks. */
const againMs = 500

/** Hears from the coordinator what holds for the engine, does it, says so, and asks for the next, until it is disposed. */
export class WeightsLoop implements AsyncDisposable {
  readonly #parts: WeightsLoopParts
  readonly #over = new AbortController()
  readonly #ended: Promise<void>
  #said: NodeSaid

  private constructor(parts: WeightsLoopParts, said: NodeSaid) {
    this.#parts = parts
    this.#said = said
    this.#ended = this.#run()
  }

  /** Does what was told when the node joined, and goes on with what comes. */
  static async begin(parts: WeightsLoopParts, told: ToldWeights): Promise<WeightsLoop> {
    return new WeightsLoop(parts, await parts.follow.apply(told))
  }

  /** Names what was told and is done. */
  get mark(): string {
    return this.#said.mark
  }

  async #run(): Promise<void> {
    const { client, follow, sessions, onDone } = this.#parts
    const { signal } = this.#over
    const over = new Promise<null>((resolve) => signal.addEventListener('abort', () => resolve(null), { once: true }))
    while (!signal.aborted) {
      const { now, also } = sessions()
      const told = await Promise.race([client.weights(now, this.#said, also).catch(() => null), over])
      if (signal.aborted) return
      // The beats and claims of the node meet the same refusal, and tell it.
      if (told === null) await setTimeout(againMs, undefined, { signal }).catch(() => undefined)
      else if (told.mark !== this.#said.mark) {
        this.#said = await follow.apply(told)
        onDone?.()
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort()
    await this.#ended
  }
}
