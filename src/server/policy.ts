import type { Config } from '../core/index.ts'
import type { SessionPolicy } from '../trajectory/index.ts'

/** The session part of the configuration as the policy that sessions are opened with. */
export function sessionPolicy(session: Config['session'], model: string | null = null): SessionPolicy {
  return {
    strategy: session.strategy,
    history: session.history,
    pin: present(session.pin),
    clamp: present(session.clamp),
    defaults: present(session.defaults),
    model,
    budget: session.budget,
    thinkingBudget: session.thinkingBudget,
    ...(session.topLogprobs === 0 ? {} : { topLogprobs: session.topLogprobs }),
    ...(session.inject.length === 0 ? {} : { inject: session.inject }),
    onDisconnect: session.onDisconnect,
  }
}

/** Without the keys that are undefined: what an exact optional type wants. */
export function present<T extends object>(part: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const kept = Object.fromEntries(Object.entries(part).filter(([, value]) => value !== undefined))
  // The keys are those of `part`; only undefined values are gone.
  return kept as { [K in keyof T]: Exclude<T[K], undefined> }
}
