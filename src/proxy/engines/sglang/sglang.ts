import type { LogprobKind } from '../../../core/index.ts'
import type { EngineAdapter, EngineRequestFacts, EngineRequestPlan } from '../contract.ts'
import { askPromptIds, askTextIds } from '../prompt-of.ts'
import { askEngine, engineRoot } from '../http.ts'
import { tokenIdentity } from '../identity.ts'
import { type EngineFacts, type Learning, toldDefaults, untoldDefaults, vocabularyIn } from '../facts.ts'
import { listedModels } from '../models.ts'
import { foundKind } from '../probe-logprobs.ts'
import { serverInfo } from './about.ts'
import { sglangChatSink } from './chat-sink.ts'
import { sglangContinuations } from './continuations.ts'
import { sglangControl } from './control.ts'
import { sglangQuirks } from './quirks.ts'
import { scoreSglang } from './score.ts'
import { sglangTokens } from './token-routes.ts'

export interface SglangOptions {
  readonly url: string
  readonly apiKey?: string | null
  /** Server version where it is known beforehand; else `fingerprint()` asks the server. */
  readonly version?: string | null
  /** A chat stream ends with its ids; where not, whole answers are asked for and the stream is made of them. */
  readonly streamsIds?: boolean
  /** The server was started with `--enable-return-routed-experts`: they are asked for and kept beside the ids. */
  readonly routedExperts?: boolean
  /** The server was started with `--enable-strict-thinking` and a reasoning parser; without, a bound is ignored in silence. */
  readonly strictThinking?: boolean
  /** `temperature` is SGLang's default; say `raw` for a server started with `SGLANG_RETURN_ORIGINAL_LOGPROB`. */
  readonly logprobKind?: LogprobKind
}

/**
 * SGLang's chat route. Ids and logprobs come in `meta_info` of whole answers (sgl-project/sglang#23751), and in one
 * `sglext` event at the end of a stream where the server can (#34488); `meta_info` is refused while streaming.
 */
export function sglangEngine(options: SglangOptions): EngineAdapter {
  const root = engineRoot(options.url)
  const apiKey = options.apiKey ?? null
  const streamsIds = options.streamsIds ?? false
  let logprobKind = options.logprobKind ?? 'temperature'
  const experts = options.routedExperts === true ? { return_routed_experts: 'true' } : {}
  let version = options.version ?? null
  const learn = async ({ probes }: Learning): Promise<EngineFacts> => {
    const [about, models] = await Promise.all([serverInfo(root, apiKey), askEngine(root, '/v1/models', apiKey)])
    if (typeof about?.['version'] === 'string') version = about['version']
    const told = (name: string): string | null => (typeof about?.[name] === 'string' ? about[name] : null)
    const parsers = [told('tool_call_parser'), told('reasoning_parser')]
    const model = listedModels(models)[0] ?? told('model_path')
    if (probes) logprobKind = (await foundKind(root, apiKey, model)) ?? logprobKind
    return {
      fingerprint: {
        engine: 'sglang',
        version,
        model: model ?? 'unknown',
        ...(await tokenIdentity(root, apiKey)),
        parsers: parsers.every((name) => name === null) ? null : parsers.map((name) => name ?? '-').join('/'),
        logprobKind,
        speculative: told('speculative_algorithm'),
        quantisation: told('quantization'),
      },
      vocabulary: vocabularyIn(about) ?? vocabularyIn(models),
      // `--sampling-defaults model`, which is the default, takes them from the model's files, and no route tells them.
      defaults: told('sampling_defaults') === 'openai' ? toldDefaults({}) : untoldDefaults,
    }
  }
  return {
    name: 'sglang',
    url: root,
    apiKey,
    gives: { tokenIds: sglangQuirks(version).chatIds, logprobs: true },
    get logprobKind() {
      return logprobKind
    },
    dispatcher: null,
    tokens: sglangTokens(root, apiKey, { streamsIds }),
    control: sglangControl(root, apiKey),
    readsChat: sglangChatSink,
    planChat(facts): EngineRequestPlan {
      const path = '/v1/chat/completions'
      // vLLM's name; here it is refused while streaming.
      const remove = ['return_token_ids']
      const logprobs = facts.askedLogprobs ? {} : { logprobs: 'true', ...alternatives(facts) }
      if (!sglangQuirks(version).chatIds) return { path, set: logprobs, remove, transport: 'as_asked' }
      if (facts.streamed && streamsIds && !facts.wholeOnly && !smears(facts, version)) {
        return {
          path,
          set: { ...logprobs, ...experts, return_input_ids_in_sglext: 'true', return_output_ids_in_sglext: 'true' },
          remove,
          transport: 'as_asked',
        }
      }
      return {
        path,
        set: { ...logprobs, ...experts, return_meta_info: 'true', return_prompt_token_ids: 'true' },
        remove,
        transport: facts.streamed ? 'buffer' : 'as_asked',
      }
    },
    score: (ids, adapter) => scoreSglang(root, apiKey, { ids, adapter }),
    continuations: sglangContinuations,
    promptIds: (chat) => askPromptIds(root, apiKey, chat),
    textIds: (text) => askTextIds(root, apiKey, text),
    ...(options.strictThinking === true ? { boundThinking } : {}),
    fingerprint: async () => (await learn({ probes: false })).fingerprint,
    learn,
  }
}

/** Its chat route has no member of its own for it (docs.sglang.io, "Thinking Budget"; `grammar_manager.py`). */
const boundThinking = (tokens: string) => ({
  custom_params: `{"thinking_budget":${tokens}}`,
})

/** Of a request that asks for no logprobs itself. */
function alternatives({ topLogprobs }: EngineRequestFacts): { readonly top_logprobs?: string } {
  return topLogprobs === null ? {} : { top_logprobs: String(topLogprobs) }
}

/** Alternatives are right only in a whole answer. */
function smears(facts: EngineRequestFacts, version: string | null): boolean {
  return sglangQuirks(version).smearsTopLogprobs && (facts.topLogprobs ?? 0) > 0
}
