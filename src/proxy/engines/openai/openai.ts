import { askEngine, engineRoot } from '../http.ts'
import { listedModels } from '../models.ts'
import type { EngineAdapter } from '../contract.ts'

export interface OpenaiOptions {
  readonly url: string
  readonly apiKey?: string | null
  /** Ask for logprobs; off for servers that refuse the field. Default true. */
  readonly logprobs?: boolean
}

/**
 * Any other server of the chat route. It gives no token ids: what is recorded has text and, where the server gives
 * them, logprobs, and every call says `missing_ids`. Nothing is invented, so RL exports refuse such calls.
 */
export function openaiEngine(options: OpenaiOptions): EngineAdapter {
  const root = engineRoot(options.url)
  const apiKey = options.apiKey ?? null
  const logprobs = options.logprobs ?? true
  return {
    name: 'openai',
    url: root,
    apiKey,
    gives: { tokenIds: false, logprobs },
    logprobKind: 'unknown',
    dispatcher: null,
    planChat: (facts) => ({
      path: '/v1/chat/completions',
      set: logprobs && !facts.askedLogprobs ? { logprobs: 'true' } : {},
      // vLLM's extension; strict servers refuse unknown fields.
      remove: ['return_token_ids'],
      transport: 'as_asked',
    }),
    async fingerprint() {
      const models = await askEngine(root, '/v1/models', apiKey)
      return {
        engine: 'openai',
        version: null,
        model: listedModels(models)[0] ?? 'unknown',
        tokenizer: null,
        chatTemplate: null,
        parsers: null,
        logprobKind: 'unknown',
        speculative: null,
        quantisation: null,
      }
    },
  }
}
