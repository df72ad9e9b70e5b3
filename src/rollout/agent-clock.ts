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
  const wall = () => o.clock.monotonic() - startedAt
  const spent = () => Math.max(0, wall() - (o.modelWaitMs() - waitedBefore))
  const expiry = new AbortController()
  let stopped: number | null = null
  let timer: NodeJS.Timeout
  // The own time cannot run out before this much wall time has passed, so looking again then misses nothing.
  const arm = () => {
    const next = Math.min(o.budgetMs - spent(), o.wallMs - wall())
    timer = setTimeout(look, Math.min(Math.max(1, next), 2 ** 31 - 1))
  }
  const look = () => {
    if (spent() >= o.budgetMs) expiry.abort(new AgentExpired('budget', o.budgetMs))
    else if (wall() >= o.wallMs) expiry.abort(new AgentExpired('wall', o.wallMs))
    else arm()
  }
  arm()
  const stop = () => {
    clearTimeout(timer)
    return (stopped ??= Math.round(spent()))
  }
  return { signal: expiry.signal, stop, [Symbol.dispose]: () => void stop() }
}
