import type { CallFaults } from '../../faults/fault-switch.ts'
import type { Profile } from '../../profiles.ts'

/** Token counts of an answer; a fault may make them wrong. */
export interface UsageCounts {
  readonly prompt: number
  readonly completion: number
  /** Tokens inside `<think>`; undefined for families that do not think. */
  readonly reasoning: number | undefined
}

/** vLLM UsageInfo (`entrypoints/serve/engine/protocol.py`). Fields without a value are left out. */
export function usageOf(counts: UsageCounts, faults: CallFaults): Record<string, unknown> {
  const completion = counts.completion + (faults.find('wrong_usage')?.by ?? 0)
  return {
    prompt_tokens: counts.prompt,
    total_tokens: counts.prompt + completion,
    completion_tokens: completion,
    ...(counts.reasoning === undefined ? {} : { completion_tokens_details: { reasoning_tokens: counts.reasoning } }),
  }
}

/** Output tokens between the thinking tags; `open` when the prompt opened them. */
export function reasoningTokens(ids: readonly number[], profile: Profile, open: boolean): number | undefined {
  if (!profile.thinks) return undefined
  const start = open ? 0 : ids.indexOf(profile.vocabulary.idOf('<think>')) + 1
  if (start === 0 && !open) return 0
  const end = ids.indexOf(profile.vocabulary.idOf('</think>'))
  return (end === -1 ? ids.length : end) - start
}
