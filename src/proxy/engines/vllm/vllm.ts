import type { EngineFingerprint, LogprobKind } from '../../../core/index.ts'
import type { LooseObject } from '../../session/sampling.ts'
import { askEngine, engineRoot } from '../http.ts'
import { tokenIdentity } from '../identity.ts'
import { listedModels } from '../models.ts'
import type { EngineAdapter, EngineRequestPlan } from '../contract.ts'
import { vllmControl } from './control.ts'
import { vllmTokens } from './token-routes.ts'
import { countTokens } from '../count-tokens.ts'
import { quirksOf } from './quirks.ts'

export interface VllmOptions {
  readonly url: string
  readonly apiKey?: string | null
  /** Server version where it is known beforehand; else `fingerprint()` asks `/version`. */
  readonly version?: string | null
  /** `raw` is vLLM's default; say `processed` for a server started with `--logprobs-mode processed_logprobs`. */
  readonly logprobKind?: LogprobKind
}

/** For requests that ask for nothing special, by far the most. */
const usualPlan: EngineRequestPlan = {
  path: '/v1/chat/completions',
  // Frozen: its text is made once, see `editObject`.
  set: Object.freeze({ return_token_ids: 'true', logprobs: 'true', top_logprobs: '0' }),
  remove: [],
  transport: 'as_asked',
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
  let quirks = quirksOf(version)
  let model: string | null = null
  return {
    name: 'vllm',
    url: root,
    apiKey,
    gives: { tokenIds: true, logprobs: true },
    logprobKind: options.logprobKind ?? 'raw',
    dispatcher: null,
    tokens: vllmTokens(root, apiKey),
    control: vllmControl(root, apiKey),
    planChat(facts) {
      const buffer = facts.streamed && facts.hasTools && quirks.has('dropsIdsInToolStreams')
      // A client that asked for logprobs would see the names of ids in them.
      const named = quirks.has('dropsHarmonyIds') && /gpt-oss/i.test(model ?? '') && !facts.askedLogprobs
      if (!named && !buffer && !facts.askedLogprobs) return usualPlan
      return {
        path: usualPlan.path,
        set: {
          return_token_ids: 'true',
          ...(named ? { return_tokens_as_token_ids: 'true' } : {}),
          ...(facts.askedLogprobs ? {} : { logprobs: 'true' }),
          ...(facts.askedLogprobs && facts.askedTopLogprobs !== null ? {} : { top_logprobs: '0' }),
        },
        remove: [],
        transport: buffer ? 'buffer' : 'as_asked',
      }
    },
    countTokens: (chat) => countTokens(root, apiKey, chat),
    // 0.20 and newer (vllm-project/vllm#20859); refused where no reasoning parser is configured.
    boundThinking: (tokens) => ({ thinking_token_budget: tokens }),
    async fingerprint() {
      const [about, models, server] = await Promise.all([
        askEngine(root, '/version', apiKey),
        askEngine(root, '/v1/models', apiKey),
        askEngine(root, '/server_info', apiKey),
      ])
      if (typeof about?.['version'] === 'string') version = about['version']
      quirks = quirksOf(version)
      model = listedModels(models)[0] ?? null
      return {
        engine: 'vllm',
        version,
        model: model ?? 'unknown',
        ...(await tokenIdentity(root, apiKey)),
        ...startedWith(server),
        logprobKind: options.logprobKind ?? 'raw',
      }
    },
  }
}

/**
 * How the server was started, from `/server_info` of vLLM's development mode (`entrypoints/serve/dev/server_info`): its
 * `vllm_config` holds the members themselves or in parts. Unknown where the route is closed.
 */
function startedWith(server: LooseObject | null): Pick<EngineFingerprint, 'parsers' | 'speculative' | 'quantisation'> {
  const config = server?.['vllm_config']
  const tool = textIn(config, 'tool_call_parser')
  const reasoning = textIn(config, 'reasoning_parser')
  return {
    parsers: tool === null && reasoning === null ? null : `${tool ?? '-'}/${reasoning ?? '-'}`,
    speculative: textIn(config, 'method') ?? textIn(config, 'speculative_config'),
    quantisation: textIn(config, 'quantization'),
  }
}

/** A text member of a value, at any depth of its objects; the first in order. */
function textIn(value: unknown, name: string): string | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  const own: unknown = Reflect.get(value, name)
  if (typeof own === 'string' && own !== '') return own
  for (const part of Object.values(value)) {
    const found = textIn(part, name)
    if (found !== null) return found
  }
  return null
}
