import { isWithoutTraining, roleOf } from '../conversation.ts'
import { jsonLine, rawJson, rawJsonArray } from '../json-line.ts'

/** A conversation: messages and tools as JSON texts. */
export interface Told {
  readonly messages: readonly string[]
  readonly tools: string | null
}

/** Why two conversations are no pair: they differ in what the model was told, or in nothing, or an answer that differs must not train. */
export type NoPair = 'other_prompt' | 'same_words' | 'untrained'

/**
 * Two conversations as a line that TRL's `DPOTrainer` reads (huggingface.co/docs/trl/dataset_formats, v0.24, preference with an explicit
 * prompt, conversational, with `tools`). `prompt` is what both begin with, up to an answer.
 */
export function preferenceLine(
  chosen: Told,
  rejected: Told,
  about: Readonly<Record<string, unknown>>,
): { readonly line: string } | NoPair {
  const shared = sharedBefore(chosen.messages, rejected.messages)
  if (typeof shared === 'string') return shared
  if ([chosen, rejected].some(({ messages }) => messages.slice(shared).some(isWithoutTraining))) return 'untrained'
  const line = jsonLine({
    prompt: rawJsonArray(chosen.messages.slice(0, shared)),
    chosen: rawJsonArray(chosen.messages.slice(shared)),
    rejected: rawJsonArray(rejected.messages.slice(shared)),
    tools: chosen.tools === null ? undefined : rawJson(chosen.tools),
    ...about,
  })
  return { line }
}

/** How many messages both begin with, up to an answer: what differs must begin with what the model said. */
function sharedBefore(one: readonly string[], other: readonly string[]): number | NoPair {
  let shared = 0
  while (shared < one.length && one[shared] === other[shared]) shared += 1
  if (shared === one.length && shared === other.length) return 'same_words'
  const answersAt = (at: number): boolean =>
    [one, other].every((messages) => roleOf(messages[at] ?? '{}') === 'assistant')
  while (shared > 0 && !answersAt(shared)) shared -= 1
  return shared === 0 ? 'other_prompt' : shared
}
