import type { LogprobKind } from '../../../core/index.ts'
import { askEngine, engineRoot, listedModels } from '../http.ts'
import type { EngineAdapter } from '../contract.ts'
import { vllmTokens } from './token-routes.ts'
import { countTokens } from './count.ts'
import { quirksOf } from './quirks.ts'

export interface VllmOptions {
  readonly url: string
  readonly apiKey?: string | null
  /** Server version where it is known beforehand; else `fingerprint()` asks `/version`. */
  readonly version?: string | null
  /** `raw` is vLLM's default; say `processed` for a server started with `--logprobs-mode processed_logprobs`. */
  readonly logprobKind?: LogprobKind
}

/**
 * vLLM's chat route with `return_token_ids` (vllm-project/vllm#22587, from 0.10.2): `prompt_token_ids` at the root of
 * the answer (first chunk of a stream), `token_ids` per choice. `logprobs: true` with `top_logprobs: 0` gives the
 * sampled token's logprob; with `top_logprobs` null there is none.
 */
export function vllmEngine(options: VllmOptions): EngineAdapter {
  const root = engineRoot(options.url)
  const apiKey = options.apiKey ?? null
  let version = options.version ?? null
  return {
    name: 'vllm',
    url: root,
    apiKey,
    gives: { tokenIds: true, logprobs: true },
    logprobKind: options.logprobKind ?? 'raw',
    dispatcher: null,
    tokens: vllmTokens(root, apiKey),
    planChat(facts) {
      const buffer = facts.streamed && facts.hasTools && quirksOf(version).dropsIdsInToolStreams
      return {
        path: '/v1/chat/completions',
        set: {
          return_token_ids: 'true',
          ...(facts.askedLogprobs ? {} : { logprobs: 'true' }),
          ...(facts.askedLogprobs && facts.askedTopLogprobs !== null ? {} : { top_logprobs: '0' }),
        },
        remove: [],
        transport: buffer ? 'buffer' : 'as_asked',
      }
    },
    countTokens: (chat) => countTokens(root, apiKey, chat),
    async fingerprint() {
      const [about, models] = await Promise.all([
        askEngine(root, '/version', apiKey),
        askEngine(root, '/v1/models', apiKey),
      ])
      if (typeof about?.['version'] === 'string') version = about['version']
      return {
        engine: 'vllm',
        version,
        model: listedModels(models)[0] ?? 'unknown',
        tokenizer: null,
        chatTemplate: null,
        parsers: null,
        logprobKind: options.logprobKind ?? 'raw',
        speculative: null,
        quantisation: null,
      }
    },
  }
}
