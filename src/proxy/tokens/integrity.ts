import type { Answer, ChoiceAnswer } from '../dialects/chat/answer.ts'
import { tokenFlag } from '../../trajectory/index.ts'

/** vLLM writes this where a logprob is minus infinity (`max(logprob, -9999.0)`, serving_chat). */
const flooredLogprob = -9999

/** What is checked against what. */
export interface IntegrityFacts {
  readonly answer: Answer
  /** False for an answer that broke off: totals are not expected to agree. */
  readonly whole: boolean
  readonly gives: { readonly tokenIds: boolean; readonly logprobs: boolean }
}

/**
 * Findings of one answer, by name: `missing_ids`, `missing_prompt_ids`, `missing_logprobs`, `count_mismatch` (ids
 * against usage), `prompt_mismatch` (prompt ids against usage), `logprob_count_mismatch`, `floored_logprob`,
 * `nan_logprob`, `missing_finish_reason`, `missing_usage`.
 */
export function findingsOf({ answer, whole, gives }: IntegrityFacts): string[] {
  const found = new Set<string>()
  const claimed = answer.claimed('completion_tokens')
  const claimedPrompt = answer.claimed('prompt_tokens')
  const withIds = answer.choices.filter((choice) => choice.tokenIds.length > 0)
  const produced = answer.choices.filter((choice) => producedSomething(choice))
  if (produced.some((choice) => choice.tokenIds.length === 0)) found.add('missing_ids')
  if (answer.choices.length > 0 && answer.promptIds === null) found.add('missing_prompt_ids')
  if (whole && claimed === null) found.add('missing_usage')
  const total = withIds.reduce((sum, choice) => sum + choice.tokenIds.length, 0)
  if (whole && withIds.length > 0 && claimed !== null && claimed !== total) found.add('count_mismatch')
  if (answer.promptIds !== null && claimedPrompt !== null && claimedPrompt !== answer.promptIds.length) {
    found.add('prompt_mismatch')
  }
  for (const choice of answer.choices) {
    if (whole && choice.finishReason === null) found.add('missing_finish_reason')
    if (choice.logprobs.length === 0) {
      if (gives.logprobs && producedSomething(choice)) found.add('missing_logprobs')
      continue
    }
    if (choice.tokenIds.length > 0 && choice.logprobs.length !== choice.tokenIds.length) {
      found.add('logprob_count_mismatch')
    }
    if (choice.logprobs.some(Number.isNaN)) found.add('nan_logprob')
    if (choice.logprobs.some((value) => value <= flooredLogprob)) found.add('floored_logprob')
  }
  return [...found].sort()
}

/** Logprobs and flags of a choice, aligned with its ids; null logprobs where the engine gave none that can be aligned. */
export function alignedLogprobs(choice: ChoiceAnswer): { logprobs: Float32Array | null; flags: Uint8Array | null } {
  const length = choice.tokenIds.length
  // Another count means that nobody can say which logprob is whose: none is better than a shifted one.
  if (choice.logprobs.length !== length || length === 0) {
    return { logprobs: null, flags: length === 0 ? null : new Uint8Array(length).fill(tokenFlag.missing) }
  }
  const logprobs = new Float32Array(choice.logprobs)
  const flags = new Uint8Array(length)
  choice.logprobs.forEach((value, index) => {
    if (Number.isNaN(value)) flags[index] = tokenFlag.nan
    else if (value <= flooredLogprob) flags[index] = tokenFlag.floored
  })
  return { logprobs, flags: flags.some((flag) => flag !== 0) ? flags : null }
}

/** The choice holds tokens or text: where it has no ids, they are missing and not absent. */
export function producedSomething(choice: ChoiceAnswer): boolean {
  return (
    choice.tokenIds.length > 0 ||
    (choice.content ?? '') !== '' ||
    (choice.reasoning ?? '') !== '' ||
    choice.toolCalls.length > 0
  )
}
