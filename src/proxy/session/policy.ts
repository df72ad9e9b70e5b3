import { PaddockError } from '../../core/index.ts'
import type { SessionPolicy } from '../../trajectory/index.ts'
import type { EngineAdapter } from '../engines/contract.ts'

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
    ...(part.inject === undefined || part.inject.length === 0 ? {} : { inject: part.inject }),
    ...(part.thinkingBudget === undefined ? {} : { thinkingBudget: part.thinkingBudget }),
    ...(part.topLogprobs === undefined || part.topLogprobs === 0 ? {} : { topLogprobs: part.topLogprobs }),
    ...(part.name === undefined ? {} : { name: part.name }),
    onDisconnect: part.onDisconnect ?? 'finish',
  }
}

/** Throws `ENGINE_INCAPABLE` where a policy demands of an engine what it would leave out in silence. */
export function requireAble(policy: SessionPolicy, { name, url, boundThinking, gives }: EngineAdapter): void {
  if ((policy.topLogprobs ?? 0) > 0 && !gives.logprobs) {
    throw new PaddockError(
      'ENGINE_INCAPABLE',
      `The engine ${name} at ${url} gives no logprobs, so it has no alternatives.`,
      {
        fix: 'Leave `topLogprobs` at 0, or use an engine that gives logprobs.',
      },
    )
  }
  if (policy.thinkingBudget !== 'pass' || boundThinking !== undefined) return
  throw new PaddockError('ENGINE_INCAPABLE', `The engine ${name} at ${url} cannot be told a bound on thinking.`, {
    fix: 'Use vLLM, or start SGLang with `--enable-strict-thinking` and `--reasoning-parser`, or leave `thinkingBudget` at `record`.',
  })
}
