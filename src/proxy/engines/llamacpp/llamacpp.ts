import { sha256 } from '../../../core/index.ts'
import type { LooseObject } from '../../session/sampling.ts'
import type { EngineAdapter } from '../contract.ts'
import { type EngineFacts, type SamplingDefaults, untoldDefaults, vocabularyIn } from '../facts.ts'
import { askEngine, engineRoot } from '../http.ts'
import { specimen } from '../identity.ts'
import { listedModels } from '../models.ts'
import { llamacppTokens, askPromptIds, serverProps } from './token-routes.ts'

export interface LlamacppOptions {
  readonly url: string
  readonly apiKey?: string | null
}

/**
 * llama.cpp's server. Its chat route never tells the ids of a prompt, so both strategies go by `/apply-template`,
 * `/tokenize` and `/completion`; what these cannot do (grammars, several choices, pictures) goes to the chat route and is
 * recorded as text. Its logprobs are of the model's own distribution, before temperature and truncation. Run against
 * build 11549 (xllamacpp 2026.10).
 */
export function llamacppEngine(options: LlamacppOptions): EngineAdapter {
  const root = engineRoot(options.url)
  const apiKey = options.apiKey ?? null
  const learn = async (): Promise<EngineFacts> => {
    const [props, models, tokenizer] = await Promise.all([
      serverProps(root, apiKey),
      askEngine(root, '/v1/models', apiKey),
      askEngine(root, '/tokenize', apiKey, { content: specimen, add_special: false, parse_special: true }),
    ])
    const told = (name: string): string | null => (typeof props?.[name] === 'string' ? props[name] : null)
    const template = told('chat_template')
    const ids = tokenizer?.['tokens']
    const defaults = settings(props)
    const speculative = defaults['speculative.types']
    return {
      fingerprint: {
        engine: 'llamacpp',
        version: told('build_info'),
        model: listedModels(models)[0] ?? told('model_alias') ?? 'unknown',
        tokenizer: Array.isArray(ids) && ids.length > 0 ? sha256(ids.join()) : null,
        chatTemplate: template === null ? null : sha256(template),
        parsers: null,
        logprobKind: 'raw',
        speculative: typeof speculative === 'string' && speculative !== 'none' ? speculative : null,
        quantisation: told('model_ftype'),
      },
      vocabulary: vocabularyIn(models),
      defaults: defaultsOf(defaults),
    }
  }
  return {
    name: 'llamacpp',
    url: root,
    apiKey,
    gives: { tokenIds: true, logprobs: true, everyLogprob: false },
    logprobKind: 'raw',
    dispatcher: null,
    tokens: llamacppTokens(root, apiKey),
    recordsByTokens: true,
    planChat: ({ askedLogprobs, topLogprobs }) => ({
      path: '/v1/chat/completions',
      set: askedLogprobs || topLogprobs === null ? {} : { logprobs: 'true', top_logprobs: String(topLogprobs) },
      remove: [],
      transport: 'as_asked',
    }),
    promptIds: (chat) => askPromptIds(root, apiKey, chat),
    fingerprint: async () => (await learn()).fingerprint,
    learn,
  }
}

/** What a request gets that says nothing; unlike vLLM's, llama.cpp's own defaults cut the distribution. */
function settings(props: LooseObject | null): LooseObject {
  const params: unknown = Reflect.get(object(props?.['default_generation_settings']), 'params')
  return object(params)
}

function defaultsOf(params: LooseObject): SamplingDefaults {
  if (params['temperature'] === undefined) return untoldDefaults
  // Written as 32-bit floats: 0.8 comes as 0.800000011920929.
  const value = (name: string): number | null =>
    typeof params[name] === 'number' ? Number(params[name].toPrecision(6)) : null
  return {
    temperature: value('temperature'),
    topP: value('top_p'),
    topK: value('top_k'),
    minP: value('min_p'),
    presencePenalty: value('presence_penalty'),
    frequencyPenalty: value('frequency_penalty'),
    repetitionPenalty: value('repeat_penalty'),
  }
}

function object(value: unknown): LooseObject {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
