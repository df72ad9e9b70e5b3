import { type Answer, type ChoiceAnswer, idNamedBy } from '../dialects/chat/answer.ts'
import { countOf, noId } from '../dialects/chat/wire-values.ts'
import { tokenFlag } from '../../trajectory/index.ts'

/** vLLM writes this where a logprob is minus infinity (`max(logprob, -9999.0)`, serving_chat). */
const flooredLogprob = -9999

/** What is checked against what. */
export interface IntegrityFacts {
  readonly answer: Answer
  /** False for an answer that broke off: totals are not expected to agree. */
  readonly whole: boolean
  readonly gives: { readonly tokenIds: boolean; readonly logprobs: boolean; readonly everyLogprob?: false }
  /** How many choices were asked for. */
  readonly n: number
  /** Ids are below it; null where the engine does not tell its vocabulary. */
  readonly vocabulary: number | null
  readonly engineChanged: boolean
}

/**
 * The one place where an engine's wire is judged, whatever engine, route and transport it came by. Findings of one answer:
 * those of `wireFaults`, which void it, `nan_logprob` and `infinite_logprob`, which mask it, and `missing_ids`, `missing_logprobs`,
 * `absent_logprob`, `floored_logprob`, `missing_finish_reason`, `missing_usage`.
 */
export function findingsOf(facts: IntegrityFacts): readonly string[] {
  const { answer, whole } = facts
  const found: string[] = [...answer.faults]
  if (facts.engineChanged) found.push('engine_changed')
  const claimed = answer.claimed('completion_tokens')
  let total = 0
  for (const choice of answer.choices) {
    total += choice.tokenIds.length
    findInChoice(choice, facts, found)
  }
  // Two samples that came as one, piece by piece: it ended twice, and there are fewer than were asked for.
  if (answer.endedAgain && answer.choices.length < facts.n) found.push('duplicate_choice')
  if (answer.choices.length > 0) findInPrompt(facts, total, found)
  if (hasInvalidCount(answer)) found.push('invalid_usage')
  else if (whole && claimed === null) found.push('missing_usage')
  if (whole && total > 0 && claimed !== null && claimed !== total) found.push('count_mismatch')
  return found.length === 0 ? found : [...new Set(found)].sort()
}

function findInPrompt({ answer, vocabulary }: IntegrityFacts, sampled: number, found: string[]): void {
  const { promptIds } = answer
  const claimed = answer.claimed('prompt_tokens')
  if (promptIds === null || promptIds.length === 0) {
    // Where no id was sampled none is missing before it: what is missing has a name of its own.
    if (sampled > 0 || promptIds === null) found.push('missing_prompt_ids')
    return
  }
  if (!areIds(promptIds, vocabulary)) found.push('invalid_prompt_ids')
  else if (claimed !== null && claimed !== promptIds.length) found.push('prompt_mismatch')
}

function findInChoice(choice: ChoiceAnswer, { whole, gives, n, vocabulary }: IntegrityFacts, found: string[]): void {
  const produced = producedSomething(choice)
  if (choice.index < 0 || choice.index >= n) found.push('invalid_choice')
  if (produced && choice.tokenIds.length === 0) found.push('missing_ids')
  if (!areIds(choice.tokenIds, vocabulary)) found.push('invalid_ids')
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
    const finding = findingOf(logprobs[at] ?? Number.NaN)
    if (finding !== null)
      found.push(finding === 'nan_logprob' && gives.everyLogprob === false ? 'absent_logprob' : finding)
    const named = idNamedBy(choice.tokenTexts[at])
    if (named !== null && named !== choice.tokenIds[at]) found.push('logprob_count_mismatch')
  }
}

/** Every id is of the vocabulary; where the engine does not tell it, no id is negative. */
function areIds(ids: readonly number[] | Int32Array, vocabulary: number | null): boolean {
  const end = vocabulary ?? 2 ** 31
  for (let at = 0; at < ids.length; at += 1) {
    const id = ids[at] ?? noId
    if (id < 0 || id >= end) return false
  }
  return true
}

function hasInvalidCount({ usage }: Answer): boolean {
  return ['prompt_tokens', 'completion_tokens'].some((name) => {
    const value = usage?.[name] ?? null
    return value !== null && countOf(value) === null
  })
}

/** Logprobs and flags of a choice, aligned with its ids; null logprobs where the engine gave none that can be aligned. */
export function alignedLogprobs(
  choice: ChoiceAnswer,
  { everyLogprob }: IntegrityFacts['gives'],
): { logprobs: Float32Array | null; flags: Uint8Array | null } {
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
    flags[at] = flag === tokenFlag.nan && everyLogprob === false ? tokenFlag.missing : flag
    if (flag === tokenFlag.nan) logprobs[at] = Number.NaN
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

/** What is wrong with a logprob; null for one that can be. It is kept as float32, where huge ones are infinite. */
function findingOf(
  logprob: number,
): 'nan_logprob' | 'infinite_logprob' | 'positive_logprob' | 'floored_logprob' | null {
  if (logprob <= 0) {
    if (logprob > flooredLogprob) return null
    return Number.isFinite(Math.fround(logprob)) ? 'floored_logprob' : 'infinite_logprob'
  }
  return Number.isNaN(logprob) ? 'nan_logprob' : 'positive_logprob'
}

function flagOf(logprob: number): number {
  if (!Number.isFinite(Math.fround(logprob))) return tokenFlag.nan
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
