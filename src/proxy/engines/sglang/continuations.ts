import type { ContinuationRoute } from '../contract.ts'
import { readGenerated } from './generate.ts'

/**
 * `POST /generate` with `input_ids` (`srt/managers/io_struct.py` GenerateReqInput, `srt/sampling/sampling_params.py`). It does not
 * repeat the prompt's ids. Documented, not run against a real server.
 */
export const sglangContinuations: ContinuationRoute = {
  ask: ({ ids, k, maxTokens, temperature }) => ({
    path: '/generate',
    body: Buffer.from(
      `{"input_ids":${ids.text},"sampling_params":{"n":${k},"max_new_tokens":${maxTokens},"temperature":${temperature},` +
        '"top_p":1,"top_k":-1,"min_p":0,"presence_penalty":0,"frequency_penalty":0,"repetition_penalty":1},' +
        '"return_logprob":true,"logprob_start_len":-1,"top_logprobs_num":0,"return_text_in_logprobs":true,"stream":false}',
    ),
  }),
  read(payload) {
    const generated = readGenerated(payload)
    if (generated === null) return null
    return {
      usage: generated.usage,
      ...(generated.error === null ? {} : { error: generated.error }),
      choices: generated.parts.map((part) => ({
        index: part.index,
        message: { content: part.text },
        finish_reason: part.finishReason,
        stop_reason: part.stopReason,
        token_ids: part.ids,
        logprobs: { content: part.entries },
        weight_versions: part.weightVersions,
      })),
    }
  },
}
