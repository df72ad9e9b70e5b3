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
export function findingsOf(facts: IntegrityFacts): readonly string[] {
  const found: string[] = []
  const { answer, whole } = facts
  const claimed = answer.claimed('completion_tokens')
  const claimedPrompt = answer.claimed('prompt_tokens')
  let total = 0
  for (const choice of answer.choices) {
    total += choice.tokenIds.length
    findInChoice(choice, facts, found)
  }
  if (answer.choices.length > 0 && answer.promptIds === null) found.push('missing_prompt_ids')
  if (whole && claimed === null) found.push('missing_usage')
  if (whole && total > 0 && claimed !== null && claimed !== total) found.push('count_mismatch')
  if (answer.promptIds !== null && claimedPrompt !== null && claimedPrompt !== answer.promptIds.length) {
    found.push('prompt_mismatch')
  }
  return found.length === 0 ? found : [...new Set(found)].sort()
}

function findInChoice(choice: ChoiceAnswer, { whole, gives }: IntegrityFacts, found: string[]): void {
  const produced = producedSomething(choice)
  if (produced && choice.tokenIds.length === 0) found.push('missing_ids')
  if (whole && choice.finishReason === null) found.push('missing_finish_reason')
  if (choice.logprobs.length === 0) {
    if (gives.logprobs && produced) found.push('missing_logprobs')
    return
  }
  if (choice.tokenIds.length > 0 && choice.logprobs.length !== choice.tokenIds.length) {
    found.push('logprob_count_mismatch')
  }
  const { logprobs } = choice
  // By index: an iterator makes an object of each number.
  for (let at = 0; at < logprobs.length; at += 1) {
    const flag = flagOf(logprobs[at] ?? Number.NaN)
    if (flag !== 0) found.push(flag === tokenFlag.nan ? 'nan_logprob' : 'floored_logprob')
  }
}

/** Logprobs and flags of a choice, aligned with its ids; null logprobs where the engine gave none that can be aligned. */
export function alignedLogprobs(choice: ChoiceAnswer): { logprobs: Float32Array | null; flags: Uint8Array | null } {
  const length = choice.tokenIds.length
  // Another count means that nobody can say which logprob is whose: none is better than a shifted one.
  if (choice.logprobs.length !== length || length === 0) {
    return { logprobs: null, flags: length === 0 ? null : new Uint8Array(length).fill(tokenFlag.missing) }
  }
  const logprobs = roomFor(length)
  logprobs.set(choice.logprobs)
  let flags: Uint8Array | null = null
  for (let at = 0; at < length; at += 1) {
    const flag = flagOf(choice.logprobs[at] ?? Number.NaN)
    if (flag === 0) continue
    flags ??= new Uint8Array(length)
    flags[at] = flag
  }
  return { logprobs, flags }
}

/** Of the page that is being filled. */
let page = new Float32Array(0)
let used = 0
const pageLength = 2048

/** A few numbers out of a page: until they are stored, and memory of their own costs each short answer more than they do. */
function roomFor(length: number): Float32Array {
  if (length > pageLength) return new Float32Array(length)
  if (used + length > page.length) {
    page = new Float32Array(pageLength)
    used = 0
  }
  used += length
  return page.subarray(used - length, used)
}

function flagOf(logprob: number): number {
  if (Number.isNaN(logprob)) return tokenFlag.nan
  return logprob <= flooredLogprob ? tokenFlag.floored : 0
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
