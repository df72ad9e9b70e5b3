import { type Id, PaddockError } from '../../core/index.ts'
import type { ShelvableAgent, ShelvedState } from './shelvable-agent.ts'

/** The agents that are at work in this process, for whoever puts them aside. */
export class Shelving {
  readonly #agents = new Map<Id, ShelvableAgent>()

  /** Dispose when its agent is over. */
  watch(rolloutId: Id, agent: ShelvableAgent): Disposable {
    this.#agents.set(rolloutId, agent)
    return {
      [Symbol.dispose]: () => {
        this.#agents.delete(rolloutId)
        agent[Symbol.dispose]()
      },
    }
  }

  /** Null: no agent of this rollout is at work here. */
  stateOf(rolloutId: Id): ShelvedState | null {
    return this.#agents.get(rolloutId)?.state ?? null
  }

  /** Rollouts of a run whose agents are at work or put aside. */
  ofRun(runId: Id): readonly Id[] {
    return [...this.#agents].flatMap(([id, agent]) => (agent.runId === runId ? [id] : []))
  }

  /** Resolves when it stands still. Throws `SHELVE_REFUSED`. */
  async shelve(rolloutId: Id, why: string): Promise<ShelvedState> {
    const agent = this.#at(rolloutId)
    try {
      await agent.shelve(why)
    } catch (cause) {
      throw refused(
        rolloutId,
        `it cannot be made to stand still (${cause instanceof Error ? cause.message : String(cause)})`,
      )
    }
    return agent.state
  }

  /** It goes on as soon as there is a place for it. Throws `SHELVE_REFUSED`. */
  resume(rolloutId: Id): ShelvedState {
    const agent = this.#at(rolloutId)
    agent.resume()
    return agent.state
  }

  /**
   * The agents of runs that are shelved at an update of the weights, as far as they are at work. Resolves with how many stand still;
   * of one that could not, `onMissed` is told.
   */
  async shelveForUpdate(why: string, onMissed: (rolloutId: Id, why: unknown) => void): Promise<number> {
    const asked = [...this.#agents].filter(([, { atWeightUpdate }]) => atWeightUpdate === 'shelve')
    const shelved = await Promise.all(
      asked.map(([rolloutId, agent]) =>
        agent.shelveForUpdate(why).catch((cause: unknown) => {
          onMissed(rolloutId, cause)
          return false
        }),
      ),
    )
    return shelved.filter((one) => one).length
  }

  /** Those that stand still for an update alone go on. */
  resumeFromUpdate(): void {
    for (const agent of this.#agents.values()) agent.resume('update')
  }

  #at(rolloutId: Id): ShelvableAgent {
    const agent = this.#agents.get(rolloutId)
    if (agent !== undefined) return agent
    throw refused(rolloutId, 'no agent of it is at work here')
  }
}

function refused(rolloutId: Id, why: string): PaddockError {
  return new PaddockError('SHELVE_REFUSED', `Rollout ${rolloutId} is not shelved or resumed: ${why}.`)
}
