import type { SessionPolicy } from '../../trajectory/index.ts'

/**
 * A whole policy from the parts that were given. Unless told otherwise: the strongest token strategy, nothing pinned,
 * no budget, and an engine call whose client went away is finished, so that the client's retry gets that answer.
 */
export function wholePolicy(part: Partial<SessionPolicy> = {}): SessionPolicy {
  return {
    strategy: part.strategy ?? 'auto',
    history: part.history ?? 'template',
    pin: part.pin ?? {},
    clamp: part.clamp ?? {},
    defaults: part.defaults ?? {},
    model: part.model ?? null,
    budget: {
      maxCalls: part.budget?.maxCalls ?? null,
      maxSampledTokens: part.budget?.maxSampledTokens ?? null,
      maxWallMs: part.budget?.maxWallMs ?? null,
    },
    ...(part.thinkingBudget === undefined ? {} : { thinkingBudget: part.thinkingBudget }),
    onDisconnect: part.onDisconnect ?? 'finish',
  }
}
