import type { EngineFingerprint, LogprobKind } from '../../../core/index.ts'
import type { LooseObject } from '../../session/sampling.ts'
import { askEngine, engineRoot } from '../http.ts'
import { tokenIdentity } from '../identity.ts'
import {
  type EngineFacts,
  kindOfMode,
  type Learning,
  type SamplingDefaults,
  toldDefaults,
  untoldDefaults,
  vocabularyIn,
} from '../facts.ts'
import { listedModels } from '../models.ts'
import { foundKind } from '../probe-logprobs.ts'
import type { EngineAdapter, EngineRequestPlan } from '../contract.ts'
import { vllmContinuations } from './continuations.ts'
import { vllmControl } from './control.ts'
import { scoreVllm } from './score.ts'
import { vllmTokens } from './token-routes.ts'
import { askPromptIds, askTextIds } from '../prompt-of.ts'
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
  let logprobKind = options.logprobKind ?? 'raw'
  const learn = async ({ probes }: Learning): Promise<EngineFacts> => {
    const [about, models, server, rendered] = await Promise.all([
      askEngine(root, '/version', apiKey),
      askEngine(root, '/v1/models', apiKey),
      askEngine(root, '/server_info?config_format=json', apiKey),
      askEngine(root, '/v1/chat/completions/render', apiKey, { messages: [{ role: 'user', content: 'x' }] }),
    ])
    if (typeof about?.['version'] === 'string') version = about['version']
    quirks = quirksOf(version)
    model = listedModels(models)[0] ?? null
    logprobKind =
      kindOfMode(textIn(server?.['vllm_config'], 'logprobs_mode')) ??
      (probes ? await foundKind(root, apiKey, model) : null) ??
      logprobKind
    return {
      fingerprint: {
        engine: 'vllm',
        version,
        model: model ?? 'unknown',
        ...(await tokenIdentity(root, apiKey)),
        ...startedWith(server),
        logprobKind,
      },
      vocabulary: vocabularyIn(server) ?? vocabularyIn(models),
      defaults: defaultsOf(rendered, server),
    }
  }
  return {
    name: 'vllm',
    url: root,
    apiKey,
    gives: { tokenIds: true, logprobs: true },
    get logprobKind() {
      return logprobKind
    },
    dispatcher: null,
    tokens: vllmTokens(root, apiKey),
    control: vllmControl(root, apiKey),
    planChat(facts) {
      const dropsIds = facts.hasTools && quirks.has('dropsIdsInToolStreams')
      const buffer = facts.streamed && (facts.wholeOnly || dropsIds)
      // A client that asked for logprobs would see the names of ids in them.
      const named = quirks.has('dropsHarmonyIds') && /gpt-oss/i.test(model ?? '') && !facts.askedLogprobs
      const top = facts.topLogprobs ?? 0
      if (!named && !buffer && !facts.askedLogprobs && top === 0) return usualPlan
      return {
        path: usualPlan.path,
        set: {
          return_token_ids: 'true',
          ...(named ? { return_tokens_as_token_ids: 'true' } : {}),
          ...(facts.askedLogprobs ? {} : { logprobs: 'true' }),
          ...(facts.askedLogprobs && facts.topLogprobs !== null ? {} : { top_logprobs: String(top) }),
        },
        remove: [],
        transport: buffer ? 'buffer' : 'as_asked',
      }
    },
    score: (ids, adapter) => scoreVllm(root, apiKey, { ids, model: adapter ?? model }),
    continuations: vllmContinuations,
    promptIds: (chat) => askPromptIds(root, apiKey, chat),
    textIds: (text) => askTextIds(root, apiKey, text),
    // 0.20 and newer (vllm-project/vllm#20859); refused where no reasoning parser is configured.
    boundThinking: (tokens) => ({ thinking_token_budget: tokens }),
    fingerprint: async () => (await learn({ probes: false })).fingerprint,
    learn,
  }
}

/**
 * The render route gives a request's sampling parameters with the server's own filled in, those of the model's
 * `generation_config` included (msgspec leaves out what is as built in). Else a server in development mode tells where its
 * defaults come from, and only those of `--generation-config vllm` are known without the model's files.
 */
function defaultsOf(rendered: LooseObject | null, server: LooseObject | null): SamplingDefaults {
  const params = rendered?.['sampling_params']
  if (isObject(params)) return toldDefaults(params)
  const config = server?.['vllm_config']
  if (textIn(config, 'generation_config') !== 'vllm') return untoldDefaults
  const overridden = objectIn(config, 'override_generation_config')
  return toldDefaults(overridden ?? {})
}

/**
 * How the server was started, from `/server_info` of vLLM's development mode: run against 0.32.0, whose `vllm_config` is a
 * line of text unless JSON is asked for, has its members in parts, and does not tell the tool parser. Unknown where the
 * route is closed.
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
  return memberIn(value, name, (own) => (typeof own === 'string' && own !== '' ? own : null))
}

function objectIn(value: unknown, name: string): LooseObject | null {
  return memberIn(value, name, (own) => (isObject(own) ? own : null))
}

function memberIn<T>(value: unknown, name: string, read: (own: unknown) => T | null): T | null {
  if (!isObject(value)) return null
  const own = read(value[name])
  if (own !== null) return own
  for (const part of Object.values(value)) {
    const found = memberIn(part, name, read)
    if (found !== null) return found
  }
  return null
}

function isObject(value: unknown): value is LooseObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
