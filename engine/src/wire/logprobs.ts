import type { CallFaults } from '../faults/fault-switch.ts'
import type { Draw } from '../generation/sampling.ts'
import type { Vocabulary } from '../tokenizer/tokenizer.ts'

/** Stands for a number that JSON has no word for until the text is written. */
const BARE = 'scripted-engine-bare:'
const BARE_WORD = /"scripted-engine-bare:(NaN|null|-9999\.0)"/g

/** A logprob for the wire: the true one, or what a fault makes of the n-th token (from 1). */
export function wireLogprob(logprob: number, token: number, faults: CallFaults): number | string {
  const bad = faults.find('bad_logprob')
  if (bad !== undefined && bad.token === token) return BARE + bad.value
  // vLLM floors minus infinity: `max(logprob, -9999.0)` (entrypoints/openai/chat_completion/serving.py).
  return Math.max(logprob, -9999)
}

/** JSON text in which the marks of `wireLogprob` are bare words; a bare `NaN` is what Python writes. */
export function wireJson(value: unknown, faults: CallFaults): string {
  const text = JSON.stringify(value)
  return faults.find('bad_logprob') === undefined ? text : text.replace(BARE_WORD, '$1')
}

/** How logprobs are written on a chat wire. */
export interface LogprobStyle {
  readonly vocabulary: Vocabulary
  /** `return_tokens_as_token_ids`: show `token_id:N` instead of text. */
  readonly tokensAsIds: boolean
  readonly topLogprobs: number
}

/** One entry of `logprobs.content` (vLLM ChatCompletionLogProbsContent). `token` counts from 1. */
export function chatLogprob(
  drawn: Draw,
  token: number,
  style: LogprobStyle,
  faults: CallFaults,
): Record<string, unknown> {
  const entry = (id: number, logprob: number | string): Record<string, unknown> => {
    const text = style.vocabulary.decode([id])
    return { token: style.tokensAsIds ? `token_id:${id}` : text, logprob, bytes: [...Buffer.from(text, 'utf8')] }
  }
  const logprob = wireLogprob(drawn.logprob, token, faults)
  // The engine lists the drawn token first, then the best others (vLLM `_get_top_logprobs` over the logprob dict).
  const others = drawn.top.filter((other) => other.id !== drawn.id)
  const top =
    style.topLogprobs === 0 ? [] : [{ id: drawn.id, logprob: drawn.logprob }, ...others].slice(0, style.topLogprobs)
  return {
    ...entry(drawn.id, logprob),
    top_logprobs: top.map((other) => entry(other.id, Math.max(other.logprob, -9999))),
  }
}
