import type { Clock } from '../core/index.ts'

/** Which of the agent's two limits was reached: its own time, or the wall's. */
export type AgentLimit = 'budget' | 'wall'

/** The reason of the signal of an {@link AgentClock}. */
export class AgentExpired extends Error {
  readonly limit: AgentLimit

  constructor(limit: AgentLimit, ms: number) {
    super(limit === 'budget' ? `the agent used its ${ms} ms` : `the agent stage took ${ms} ms by the wall`)
    this.limit = limit
  }
}

/** Counts the time that is the agent's own: what passes while no call of it waits for the model. */
export interface AgentClock extends Disposable {
  /** Fires with an {@link AgentExpired}. */
  readonly signal: AbortSignal
  /** Stands still until every answer is disposed, the wall too: what passes meanwhile is nobody's time. */
  hold(): Disposable
  /** Milliseconds of the agent's own time so far; stands still once stopped. */
  stop(): number
}

/** Starts counting. `modelWaitMs` is the time, ever growing, in which a call of the agent was with the engine. */
export function startAgentClock(o: {
  readonly budgetMs: number
  readonly wallMs: number
  readonly clock: Clock
  readonly modelWaitMs: () => number
}): AgentClock {
  const startedAt = o.clock.monotonic()
  const waitedBefore = o.modelWaitMs()
  // What passed, and what of it was the model's, while somebody held the clock.
  const held = { count: 0, wallMs: 0, modelMs: 0, since: 0, waited: 0 }
  const wall = () => (held.count > 0 ? held.since : o.clock.monotonic()) - startedAt - held.wallMs
  const model = () => (held.count > 0 ? held.waited : o.modelWaitMs()) - waitedBefore - held.modelMs
  const spent = () => Math.max(0, wall() - model())
  const expiry = new AbortController()
  let stopped: number | null = null
  let timer: NodeJS.Timeout
  // The own time cannot run out before this much wall time has passed, so looking again then misses nothing.
  const arm = () => {
    const next = Math.min(o.budgetMs - spent(), o.wallMs - wall())
    timer = setTimeout(look, Math.min(Math.max(1, next), 2 ** 31 - 1))
  }
  const look = () => {
    if (held.count > 0) return
    if (spent() >= o.budgetMs) expiry.abort(new AgentExpired('budget', o.budgetMs))
    else if (wall() >= o.wallMs) expiry.abort(new AgentExpired('wall', o.wallMs))
    else arm()
  }
  arm()
  const hold = (): Disposable => {
    if (held.count === 0) [held.since, held.waited] = [o.clock.monotonic(), o.modelWaitMs()]
    held.count += 1
    let over = false
    return {
      [Symbol.dispose]: () => {
        if (over) return
        over = true
        if (held.count === 1) {
          held.wallMs += o.clock.monotonic() - held.since
          held.modelMs += o.modelWaitMs() - held.waited
        }
        held.count -= 1
        if (held.count > 0 || stopped !== null) return
        clearTimeout(timer)
        arm()
      },
    }
  }
  const stop = () => {
    clearTimeout(timer)
    return (stopped ??= Math.round(spent()))
  }
  return { signal: expiry.signal, hold, stop, [Symbol.dispose]: () => void stop() }
}
