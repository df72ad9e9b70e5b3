import { parseEngineJson } from '../../dialects/chat/answer.ts'
import type { LooseObject } from '../../session/sampling.ts'
import type { ContinuationRoute } from '../contract.ts'

/**
 * `POST /v1/completions` with ids (vLLM 0.32.0, `entrypoints/openai/completion/protocol.py`), which every server has: ids come
 * back per choice and the prompt's with each, and `logprobs: 0` tells the sampled token's own.
 */
export const vllmContinuations: ContinuationRoute = {
  ask: ({ ids, model, k, maxTokens, temperature }) => ({
    path: '/v1/completions',
    body: Buffer.from(
      `{${model === null ? '' : `"model":${JSON.stringify(model)},`}"prompt":${ids.text},"n":${k},` +
        `"max_tokens":${maxTokens},"temperature":${temperature},"top_p":1,"top_k":-1,"min_p":0,"presence_penalty":0,` +
        '"frequency_penalty":0,"repetition_penalty":1,"logprobs":0,"return_token_ids":true}',
    ),
  }),
  read(payload) {
    const root = parseEngineJson(payload)
    const choices = root?.['choices']
    if (root === null || !Array.isArray(choices)) return null
    return {
      ...root,
      prompt_token_ids: object(choices[0])['prompt_token_ids'],
      choices: choices.map((choice) => {
        const { index, text, finish_reason, stop_reason, token_ids, logprobs } = object(choice)
        return { index, message: { content: text }, finish_reason, stop_reason, token_ids, logprobs: listOf(logprobs) }
      }),
    }
  },
}

/** Parallel lists as the chat route has them. */
function listOf(logprobs: unknown): LooseObject {
  const { token_logprobs: told, tokens } = object(logprobs)
  if (!Array.isArray(told)) return { content: [] }
  const texts: readonly unknown[] = Array.isArray(tokens) ? tokens : []
  return { content: told.map((logprob: unknown, at) => ({ logprob, token: texts[at] })) }
}

function object(value: unknown): LooseObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}
