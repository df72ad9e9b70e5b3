import { sessionSchema } from '../../config/index.ts'
import { PaddockError } from '../../core/index.ts'
import type { SessionPolicy } from '../../trajectory/index.ts'
import type { EngineAdapter } from '../engines/contract.ts'

const standard = sessionSchema.parse({})

/** A whole policy from the parts that were given; the others are the defaults of the configuration. */
export function wholePolicy(part: Partial<SessionPolicy> = {}): SessionPolicy {
  return {
    strategy: part.strategy ?? standard.strategy,
    history: part.history ?? standard.history,
    pin: part.pin ?? {},
    clamp: part.clamp ?? {},
    defaults: part.defaults ?? {},
    model: part.model ?? null,
    budget: { ...standard.budget, ...part.budget },
    ...(part.inject === undefined || part.inject.length === 0 ? {} : { inject: part.inject }),
    ...(part.thinkingBudget === undefined ? {} : { thinkingBudget: part.thinkingBudget }),
    ...(part.topLogprobs === undefined || part.topLogprobs === 0 ? {} : { topLogprobs: part.topLogprobs }),
    ...(part.name === undefined ? {} : { name: part.name }),
    onDisconnect: part.onDisconnect ?? standard.onDisconnect,
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
