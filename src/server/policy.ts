import type { Config } from '../config/index.ts'
import { present } from '../core/index.ts'
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
