import type { LogprobKind, SamplingParams } from '../../core/index.ts'

/** Names in `SamplingParams.other` that end an answer and leave the probabilities of its tokens alone. */
const harmless: ReadonlySet<string> = new Set(['stop_token_ids', 'ignore_eos', 'length_penalty'])

/**
 * Why the tokens of a call do not train; null where they do. A trainer recomputes probabilities under its own model: it
 * cannot do so for what a grammar, a forced tool or truncation shaped, nor where the recorded logprob is of another
 * distribution than the one that was sampled from. `null` among `used`: nobody set it, and engines' own defaults may not
 * be neutral, so the kinds that ignore them do not count.
 */
export function whyOff(used: SamplingParams, kind: LogprobKind): 'constrained' | 'logprob_kind' | null {
  const { topP, topK, minP, presencePenalty, frequencyPenalty, repetitionPenalty, temperature, other } = used
  const truncated = (topP !== null && topP < 1) || (topK !== null && topK > 0) || (minP !== null && minP > 0)
  const penalised = (presencePenalty ?? 0) !== 0 || (frequencyPenalty ?? 0) !== 0 || (repetitionPenalty ?? 1) !== 1
  if (truncated || penalised || other.some((name) => !harmless.has(name))) return 'constrained'
  return (kind === 'raw' || kind === 'unknown') && temperature !== 1 ? 'logprob_kind' : null
}
