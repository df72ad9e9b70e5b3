import { type Id, isPaddockError, KeyedTurns } from '../../core/index.ts'
import type { CallLine, Proxy, SessionStats } from '../../proxy/index.ts'
import type { Store } from '../../trajectory/index.ts'
import type { RunProgress } from '../contract.ts'
import { trainerRunOf } from './run-config.ts'

/** How far a rollout has come with a turn. JSON. */
export interface TurnProgress {
  readonly runId: Id
  readonly groupId: Id
  readonly rolloutId: Id
  readonly sessionId: Id
  readonly callId: Id
  readonly callClass: CallLine['callClass']
  /** Answered calls of the session by now, this one included. */
  readonly turn: number
  /** Sampled in the session by now. */
  readonly sampledTokens: number
  /** Of this call: prompt and answer. Null: the engine does not count. */
  readonly contextTokens: number | null
  /** Of this answer: see `CallLine`. */
  readonly entropy: number | null
  /** Parts of the reward that its environment has told so far, by name. Absent: it has told none. */
  readonly rewards?: Readonly<Record<string, number>>
}

export interface TurnEventsParts {
  readonly store: Pick<Store, 'catalogue' | 'trainer'>
  readonly proxy: Pick<Proxy, 'sessionStats'>
  /** Told of each turn, in the order of each rollout. */
  readonly onTurn: (turn: TurnProgress) => void
  /** What a run was to be told is not stored. */
  readonly onFailure: (rolloutId: Id, error: unknown) => void
}

interface Belongs {
  readonly runId: Id
  readonly groupId: Id
  /** Its run has turns among its events. */
  readonly isTold: boolean
}

/** Of so many rollouts it is remembered where they belong. */
const mostKnown = 4096

/** Tells of rollouts that go on, turn by turn: whoever watches, and the runs that asked for it in their events. */
export class TurnEvents {
  readonly #parts: TurnEventsParts
  readonly #known = new Map<Id, Belongs>()
  readonly #turns = new KeyedTurns<Id>()
  /** Of rollouts that go on here. */
  readonly #rewards = new Map<Id, Readonly<Record<string, number>>>()

  constructor(parts: TurnEventsParts) {
    this.#parts = parts
  }

  /** A rollout that is done here has come on. */
  progress(one: RunProgress): void {
    if (one.type === 'ended') this.#rewards.delete(one.rollout.rolloutId)
    if (one.type === 'reward') this.#rewards.set(one.rolloutId, { ...this.#rewards.get(one.rolloutId), ...one.parts })
  }

  /** A call has settled. */
  note(call: CallLine): void {
    const { rolloutId, sessionId, callId, callClass, outcome, promptTokens, sampledTokens: sampled, entropy } = call
    if (rolloutId === null || outcome.kind !== 'complete' || (callClass !== 'main' && callClass !== 'subagent')) return
    const stats = this.#statsOf(sessionId)
    if (stats === null) return
    const { answered: turn, sampledTokens } = stats
    const contextTokens = promptTokens === null || sampled === null ? null : promptTokens + sampled
    const rewards = this.#rewards.get(rolloutId)
    const said = rewards === undefined ? {} : { rewards }
    const came = { rolloutId, sessionId, callId, callClass, turn, sampledTokens, contextTokens, entropy, ...said }
    this.#turns
      .take(rolloutId, async () => {
        const { isTold, ...belongs } = await this.#belongs(rolloutId)
        const progress = { ...belongs, ...came }
        this.#parts.onTurn(progress)
        const { runId, ...told } = progress
        if (isTold) await this.#parts.store.trainer.tell(runId, 'turn', told)
      })
      .catch((error: unknown) => this.#parts.onFailure(rolloutId, error))
  }

  /** Null: the session was closed long before its call settled, and nobody waits for the turn. */
  #statsOf(sessionId: Id): SessionStats | null {
    try {
      return this.#parts.proxy.sessionStats(sessionId)
    } catch (error) {
      if (isPaddockError(error) && error.code === 'SESSION_UNKNOWN') return null
      throw error
    }
  }

  async #belongs(rolloutId: Id): Promise<Belongs> {
    const known = this.#known.get(rolloutId)
    if (known !== undefined) return known
    const { catalogue } = this.#parts.store
    const { runId, groupId } = await catalogue.rollout(rolloutId)
    const isTold = trainerRunOf(await catalogue.run(runId)).turnEvents === true
    const [oldest] = this.#known.keys()
    if (oldest !== undefined && this.#known.size >= mostKnown) this.#known.delete(oldest)
    const found = { runId, groupId, isTold }
    this.#known.set(rolloutId, found)
    return found
  }
}
