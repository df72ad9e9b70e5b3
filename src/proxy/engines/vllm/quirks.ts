/** Something that versions of vLLM do otherwise than the rest of this adapter expects, and what is done about it. */
export interface VllmQuirk {
  readonly name: string
  /** First version that does it, and first that does not; null: no end known. */
  readonly from: string
  readonly before: string | null
  readonly source: string
  /** What the proxy does. */
  readonly counter: string
}

/** The quirk table. Where a row gives a reason to ask otherwise, {@link quirksOf} names it. */
export const vllmQuirks = [
  {
    name: 'flatErrors',
    from: '0.0.0',
    before: '0.10.0',
    source: '`ErrorResponse` without envelope',
    counter: 'both shapes are read',
  },
  {
    name: 'noIds',
    from: '0.0.0',
    before: '0.10.2',
    source: 'vllm-project/vllm#22587 added `return_token_ids`',
    counter: 'finding `missing_ids`; RL exports refuse such calls',
  },
  {
    name: 'dropsIdsInToolStreams',
    from: '0.10.2',
    before: '0.12.0',
    source: 'vllm-project/vllm#27482, fixed by #29074: deltas that the tool parser swallows take their ids along',
    counter: 'whole answers are asked for, the stream is made of them, keep-alives meanwhile',
  },
  {
    name: 'dropsHarmonyIds',
    from: '0.10.2',
    before: '0.12.0',
    source: 'vllm-project/vllm#28246, fixed by #28256: gpt-oss answers have `token_ids: null`',
    counter: '`return_tokens_as_token_ids`: ids are read from the logprobs',
  },
  {
    name: 'callsItReasoningContent',
    from: '0.0.0',
    before: '0.12.0',
    source: '`reasoning_content` became `reasoning`',
    counter: 'both names are read and sent back as they came',
  },
  {
    name: 'toolDeltasLackIds',
    from: '0.0.0',
    before: null,
    source: 'vllm-project/vllm#42696, #31438: later deltas of a tool call have neither id nor name',
    counter: 'each delta is completed before it leaves',
  },
  {
    name: 'noLogprobsWithoutTop',
    from: '0.0.0',
    before: '0.32.0',
    source: '`logprobs: true` with `top_logprobs` null gives none; 0.32.0 gives them (run)',
    counter: '`top_logprobs: 0` is always sent',
  },
  {
    name: 'floorsLogprobs',
    from: '0.0.0',
    before: null,
    source: '`max(logprob, -9999.0)` in the chat routes; NaN is not floored and is no JSON',
    counter: 'flags `floored` and `nan` per token; bare NaN is read',
  },
  {
    name: 'generateStopsAt16',
    from: '0.0.0',
    before: '0.29.0',
    source: '`SamplingParams.max_tokens` was 16 where the generate route was not told',
    counter: '`max_tokens` is always sent',
  },
  {
    name: 'generateCapsSilently',
    from: '0.0.0',
    before: null,
    source: '`GenerateRequest.build_tok_params` checks no length',
    counter: 'what the chat route would refuse is refused before',
  },
  {
    name: 'generateNamesIds',
    from: '0.0.0',
    before: '0.32.0',
    source: 'generate logprobs had `token: "token_id:N"` in the place of `token_id`',
    counter: 'both are read',
  },
  {
    name: 'derenderReplays',
    from: '0.27.0',
    before: null,
    source: 'a parser is fed anew with all ids at each step (`DerenderStreamState`), and needs all prompt ids',
    counter: 'long prompts and many streams at once take larger steps',
  },
] as const satisfies readonly VllmQuirk[]

export type VllmQuirkName = (typeof vllmQuirks)[number]['name']

/** The quirks of a version. An unknown one has those without an end: the findings of its calls say where that was wrong. */
export function quirksOf(version: string | null): ReadonlySet<VllmQuirkName> {
  const numbers = /^v?(\d+)\.(\d+)(?:\.(\d+))?/.exec(version ?? '')
  const has = (quirk: VllmQuirk): boolean => {
    if (numbers === null) return quirk.before === null
    return !isBefore(numbers, quirk.from) && (quirk.before === null || isBefore(numbers, quirk.before))
  }
  return new Set(vllmQuirks.filter(has).map(({ name }) => name))
}

function isBefore(numbers: RegExpExecArray, bound: string): boolean {
  for (const [at, limit] of bound.split('.').entries()) {
    const own = Number(numbers[at + 1] ?? 0)
    if (own !== Number(limit)) return own < Number(limit)
  }
  return false
}
