/** How hard the model is asked to think, in the three oldest words of `reasoning_effort`. */
export type ReasoningEffort = 'low' | 'medium' | 'high'

/**
 * Words of the APIs: OpenAI has `none, minimal, low, medium, high, xhigh`, Anthropic adds `max`, Gemini writes upper
 * case. vLLM at 002032ee takes all of them (`chat_completion/protocol.py`); which releases and engines take fewer was not
 * tried, so the ends are drawn in to the three that OpenAI's first models had: a harness that says `xhigh` gets an answer. `none` and foreign words say nothing to the engine. The recorded body keeps what was asked.
 */
const words: Readonly<Record<string, ReasoningEffort>> = {
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
}

export function readEffort(word: string | undefined): ReasoningEffort | null {
  return words[word?.toLowerCase() ?? ''] ?? null
}
