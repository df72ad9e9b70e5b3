import { askEngine, engineRoot } from '../http.ts'
import { listedModels } from '../models.ts'
import type { EngineAdapter } from '../contract.ts'
import { type EngineFacts, untoldDefaults, vocabularyIn } from '../facts.ts'

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
  const learn = async (): Promise<EngineFacts> => {
    const models = await askEngine(root, '/v1/models', apiKey)
    return {
      fingerprint: {
        engine: 'openai',
        version: null,
        model: listedModels(models)[0] ?? 'unknown',
        tokenizer: null,
        chatTemplate: null,
        parsers: null,
        logprobKind: 'unknown',
        speculative: null,
        quantisation: null,
      },
      vocabulary: vocabularyIn(models),
      defaults: untoldDefaults,
    }
  }
  return {
    name: 'openai',
    url: root,
    apiKey,
    gives: { tokenIds: false, logprobs },
    logprobKind: 'unknown',
    dispatcher: null,
    planChat: (facts) => ({
      path: '/v1/chat/completions',
      set:
        logprobs && !facts.askedLogprobs
          ? { logprobs: 'true', ...(facts.topLogprobs === null ? {} : { top_logprobs: String(facts.topLogprobs) }) }
          : {},
      // vLLM's extension; strict servers refuse unknown fields.
      remove: ['return_token_ids'],
      transport: facts.streamed && facts.wholeOnly ? 'buffer' : 'as_asked',
    }),
    fingerprint: async () => (await learn()).fingerprint,
    learn,
  }
}
