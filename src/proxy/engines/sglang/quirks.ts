/** What a version of SGLang gives, and what it is known to get wrong. */
export interface SglangQuirks {
  /**
   * Chat takes `input_ids` and gives `return_meta_info` and `return_prompt_token_ids` (sgl-project/sglang#23751, merged
   * 2026-06-04, first released in 0.5.13; 0.5.12.post1 exposes none of it: NVIDIA-NeMo/Gym#1787).
   */
  readonly chatIds: boolean
  /**
   * An event of a chat stream with several tokens repeats the first one's alternatives for all of them
   * (`serving_chat.py` `_process_logprobs_tokens`, `use_token_index=False`), so a stream's `top_logprobs` are not kept.
   */
  readonly smearsTopLogprobs: boolean
}

/**
 * What differs by version. Whether a chat stream ends with its ids (`sglext`, sgl-project/sglang#34488) stands not in it: no
 * release notes name the first version, so the server is asked. An unknown version is taken for a current one, and the
 * findings of its calls say where that was wrong.
 */
export function sglangQuirks(version: string | null): SglangQuirks {
  const numbers = /^v?(\d+)\.(\d+)\.(\d+)/
    .exec(version ?? '')
    ?.slice(1)
    .map(Number)
  const [major = 0, minor = 0, patch = 0] = numbers ?? []
  const old = numbers !== undefined && (major || minor - 5 || patch - 13) < 0
  return { chatIds: !old, smearsTopLogprobs: true }
}
