/** What a version of vLLM is known to get wrong. */
export interface VllmQuirks {
  /**
   * Streams with tools lose the `token_ids` of deltas that the tool parser swallows
   * (vllm-project/vllm#27482, fixed by #29074, first released in 0.12.0).
   */
  readonly dropsIdsInToolStreams: boolean
}

/** The quirk table. An unknown version gets none: the count check of each call says so where that was wrong. */
export function quirksOf(version: string | null): VllmQuirks {
  const numbers = /^v?(\d+)\.(\d+)/.exec(version ?? '')
  if (numbers === null) return { dropsIdsInToolStreams: false }
  const [major, minor] = [Number(numbers[1]), Number(numbers[2])]
  return { dropsIdsInToolStreams: major === 0 && minor < 12 }
}
