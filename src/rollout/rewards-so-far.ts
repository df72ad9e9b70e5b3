import type { EventBody, Id } from '../core/index.ts'
import type { ToolOutcome } from '../envs/index.ts'

/** Tells what a tool's call made known of the reward. A number that is not finite is none. */
export function tellRewards(
  emit: (event: EventBody) => void,
  { rewards = {} }: Pick<ToolOutcome, 'rewards'>,
  callId: Id | null,
): void {
  const known = Object.entries(rewards).filter(([, value]) => Number.isFinite(value))
  if (known.length > 0) emit({ kind: 'reward', callId, parts: Object.fromEntries(known) })
}
