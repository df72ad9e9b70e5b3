import type { Id } from '../core/index.ts'
import type { EnvironmentRegistry } from '../envs/index.ts'
import {
  type FindRoleEngine,
  isUnverified,
  type UnverifiedRollout,
  type VerifyElsewhere,
  verifyLeft,
} from '../rollout/index.ts'
import type { SandboxProvider } from '../sandbox/index.ts'
import type { OwnedStore } from '../trajectory/index.ts'

/** What the work that earlier processes left is verified with. */
export interface LeftVerifier {
  readonly environments: EnvironmentRegistry
  readonly sandbox: SandboxProvider | null
  /** Verifies in place of this machine; null: that is done here. */
  readonly elsewhere: VerifyElsewhere | null
  readonly judge: FindRoleEngine | null
  readonly signal: AbortSignal
  readonly note: (line: string) => void
}

/**
 * The rollouts that were unverified when this owner opened its data directory. They are verified one at a time beside the
 * runs of this owner, each by one of them; a run that is gone on with verifies its own.
 */
export class LeftWork {
  readonly #store: OwnedStore
  #waiting: readonly UnverifiedRollout[]
  #current: { readonly runId: Id; readonly done: Promise<void> } | null = null

  constructor(store: OwnedStore, unverified: readonly UnverifiedRollout[]) {
    this.#store = store
    this.#waiting = unverified
  }

  /** Leaves the rollouts of a run to whoever goes on with it, once none of them is being verified here. */
  async leaveTo(runId: Id): Promise<void> {
    this.#waiting = this.#waiting.filter((rollout) => rollout.runId !== runId)
    if (this.#current?.runId === runId) await this.#current.done
  }

  /** Resolves when nothing waits any more, or the signal has aborted. What cannot be verified is told and stays as it is. */
  async verify(o: LeftVerifier): Promise<void> {
    if (this.#waiting.length > 0) o.note(`verifying what ${this.#waiting.length} agents of earlier runs left`)
    while (!o.signal.aborted && this.#current === null) {
      const [next, ...rest] = this.#waiting
      if (next === undefined) return
      this.#waiting = rest
      const done = this.#one(o, next)
      this.#current = { runId: next.runId, done }
      await done
      this.#current = null
    }
  }

  async #one(
    { environments, sandbox, elsewhere, judge, signal, note }: LeftVerifier,
    rollout: UnverifiedRollout,
  ): Promise<void> {
    try {
      const now = await this.#store.catalogue.rollout(rollout.id)
      if (!isUnverified(now)) return
      const task = await this.#store.catalogue.task(now.taskDigest)
      const environment = task.environment === 'none' ? null : environments.get(task.environment)
      const left = await verifyLeft({ store: this.#store, environment, sandbox, elsewhere, judge, signal }, now, task)
      if (left.outcome !== 'verified') note(`rollout ${now.id} of an earlier run: ${left.detail}`)
    } catch (error) {
      if (!signal.aborted) note(`rollout ${rollout.id} of an earlier run stays unverified: ${String(error)}`)
    }
  }
}
