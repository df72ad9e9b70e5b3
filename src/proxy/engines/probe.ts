import { type LogprobKind, PaddockError } from '../../core/index.ts'
import type { LooseObject } from '../session/sampling.ts'
import { engineRoot, tellEngine, tryEngine } from './http.ts'
import { contextLength, listedModels } from './models.ts'
import { probeLogprobKind } from './probe-logprobs.ts'
import { llamacppTokens, serverProps, templateTakesTools } from './llamacpp/index.ts'
import { serverInfo, sglangTokens } from './sglang/index.ts'
import { whyVoid } from '../tokens/void-render.ts'
import type { TokenAbility, TokenEngine } from './token-engine.ts'
import { type Lack, vllmLacks, vllmTokens } from './vllm/index.ts'

/** What an engine can do, found out by asking it. */
export interface EngineProbe {
  /** Root without `/v1`. */
  readonly url: string
  readonly kind: 'vllm' | 'sglang' | 'llamacpp' | 'openai'
  readonly models: readonly string[]
  /** The model that was asked. */
  readonly model: string
  readonly version: string | null
  readonly givesIds: boolean
  readonly givesPromptIds: boolean
  readonly givesLogprobs: boolean
  readonly givesToolCalls: boolean
  /** A stream brings the ids of its answer; where not, whole answers are asked for and streams made of them. */
  readonly streamsIds: boolean
  /** SGLang gives routed experts when asked; vLLM gives them unasked where it was started to. */
  readonly routedExperts: boolean
  /** SGLang holds a model to a bound on its thinking (`--enable-strict-thinking` beside a reasoning parser). */
  readonly strictThinking: boolean
  /** How the strategy `splice` works with this engine, null where it does not: `auto` records then. */
  readonly splice: TokenAbility['way'] | null
  /** Why `splice` is null although the engine has the routes for it. */
  readonly spliceVoid: string | null
  readonly logprobKind: LogprobKind
  readonly maxModelLen: number | null
  /** What is missing, each with what to do about it. */
  readonly missing: readonly { readonly what: string; readonly fix: string }[]
}

const probeTool = {
  type: 'function',
  function: {
    name: 'shell',
    description: 'Run a shell command.',
    parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
  },
}

/**
 * Asks an engine for its models and version, and then for a few short answers. `model` null: the only listed one.
 * Throws `ENGINE_UNREACHABLE`, `ENGINE_ERROR` where it answers nothing, `CONFIG_INVALID` where the model must be named.
 */
export async function probeEngine(
  url: string,
  options: { readonly apiKey?: string | null; readonly model?: string | null } = {},
): Promise<EngineProbe> {
  const root = engineRoot(url)
  const apiKey = options.apiKey ?? null
  const [listed, about, server, props] = await Promise.all([
    tryEngine(root, '/v1/models', apiKey),
    tryEngine(root, '/version', apiKey),
    serverInfo(root, apiKey),
    serverProps(root, apiKey),
  ])
  if (listed.status === 401 || listed.status === 403) {
    throw new PaddockError('ENGINE_ERROR', `The engine at ${root} refuses the key (${listed.status}).`, {
      fix: 'Set ENGINE_API_KEY to the key of the engine.',
    })
  }
  const models = listedModels(listed.body)
  const model = options.model ?? onlyModel(models, root)
  const hello = { model, messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 8 }
  const ask = (more: LooseObject) => tryEngine(root, '/v1/chat/completions', apiKey, { ...hello, ...more })
  // SGLang tells its arguments; vLLM's `/server_info` says other things.
  const sglang = typeof server?.['model_path'] === 'string'
  const llamacpp = props !== null
  const rich = await ask(sglang ? sglangAsk : vllmAsk)
  const plain = rich.status < 400 ? rich : await ask({})
  if (plain.status >= 400) {
    throw new PaddockError('ENGINE_ERROR', `The engine at ${root} answers ${plain.status}: ${message(plain.body)}.`)
  }
  const chatGives = sglang ? sglangGives(rich.body) : vllmGives(rich.body)
  const version =
    text(about.body?.['version']) ?? (sglang ? text(server?.['version']) : null) ?? text(props?.['build_info'])
  const kind = llamacpp ? 'llamacpp' : sglang ? 'sglang' : chatGives.ids || version !== null ? 'vllm' : 'openai'
  const byTokens = tokenRoutes()
  // Side by side: behind an engine that others wait for as well, each answer takes as long as the queue.
  const [called, { streamsIds, ability, spliceVoid }, { gives, logprobKind }] = await Promise.all([
    ask({ tools: [probeTool], tool_choice: 'auto' }),
    byTokens,
    logprobs(),
  ])
  const tools = props === null || templateTakesTools(props) ? called : toolless
  const known = { tokenRoutes: ability !== null, logprobKind: logprobKind !== 'unknown' || !gives.logprobs }
  return {
    url: root,
    kind,
    models,
    model,
    version,
    givesIds: gives.ids,
    givesPromptIds: gives.promptIds,
    givesLogprobs: gives.logprobs,
    givesToolCalls: tools.status < 400,
    streamsIds,
    routedExperts: sglang && server?.['enable_return_routed_experts'] === true,
    strictThinking: sglang && isStrict(server),
    splice: spliceVoid === null ? (ability?.way ?? null) : null,
    spliceVoid,
    logprobKind,
    maxModelLen: contextLength(listed.body, model) ?? ability?.maxModelLen ?? null,
    missing: [...missingOf(kind, gives, tools), ...(kind === 'vllm' ? await vllmLacks(root, apiKey, known) : [])],
  }

  async function tokenRoutes() {
    const streamsIds = sglang ? await streamsSglext(root, apiKey, hello) : chatGives.ids
    const tokens = tokensOf(kind, root, apiKey, streamsIds)
    const ability = (await tokens?.probe()) ?? null
    return {
      streamsIds,
      ability,
      spliceVoid: tokens === null || ability === null ? null : await whyVoid(tokens, ability),
    }
  }

  async function logprobs() {
    // Calls of llama.cpp go by its token routes, which give all of it.
    const all = llamacpp && (await byTokens).ability !== null
    const gives = all ? { ids: true, promptIds: true, logprobs: true } : chatGives
    return { gives, logprobKind: gives.logprobs ? await probeLogprobKind(ask) : ('unknown' as const) }
  }
}

/** SGLang's arguments stand at the top of what it tells of itself, or in groups (0.5.21). */
function isStrict(about: LooseObject | null): boolean {
  return [about, ...Object.values(about ?? {})]
    .map(object)
    .some((group) => group['enable_strict_thinking'] === true && text(group['reasoning_parser']) !== null)
}

/** As if it had said so. */
const toolless = { status: 501, body: { message: 'the template of its model takes no tools' } }

const vllmAsk: LooseObject = { return_token_ids: true, logprobs: true, top_logprobs: 0 }
const sglangAsk: LooseObject = { return_meta_info: true, return_prompt_token_ids: true, logprobs: true }

/** What an answer brought. */
interface Given {
  readonly ids: boolean
  readonly promptIds: boolean
  readonly logprobs: boolean
}

function vllmGives(body: LooseObject | null): Given {
  const choice = firstChoice(body)
  return {
    ids: Array.isArray(choice['token_ids']),
    promptIds: Array.isArray(body?.['prompt_token_ids']),
    logprobs: hasEntries(choice),
  }
}

function sglangGives(body: LooseObject | null): Given {
  const choice = firstChoice(body)
  const rows = object(choice['meta_info'])['output_token_logprobs']
  const ids = Array.isArray(rows) && rows.length > 0
  return { ids, promptIds: Array.isArray(choice['prompt_token_ids']), logprobs: ids || hasEntries(choice) }
}

function hasEntries(choice: LooseObject): boolean {
  const content = object(choice['logprobs'])['content']
  return Array.isArray(content) && content.length > 0
}

/** No release notes name the first version whose chat streams end with ids, so one is asked for. */
async function streamsSglext(root: string, apiKey: string | null, hello: LooseObject): Promise<boolean> {
  const more = { stream: true, max_tokens: 1, return_input_ids_in_sglext: true, return_output_ids_in_sglext: true }
  const { status, text: events } = await tellEngine(root, '/v1/chat/completions', apiKey, { ...hello, ...more })
  return status < 400 && /"sglext":\s*\{.*"output_ids":\s*\[/.test(events)
}

function tokensOf(
  kind: EngineProbe['kind'],
  root: string,
  apiKey: string | null,
  streamsIds: boolean,
): TokenEngine | null {
  if (kind === 'llamacpp') return llamacppTokens(root, apiKey)
  if (kind === 'sglang') return sglangTokens(root, apiKey, { streamsIds })
  return kind === 'vllm' ? vllmTokens(root, apiKey) : null
}

const idsFrom: Readonly<Record<EngineProbe['kind'], string>> = {
  vllm: 'Use vLLM 0.10.2 or newer (`return_token_ids`)',
  sglang: 'Use SGLang 0.5.13 or newer',
  llamacpp: 'Use a llama-server whose `/apply-template` and `/tokenize` answer',
  openai: 'Use vLLM 0.10.2 or newer (`return_token_ids`)',
}

const toolsFrom: Readonly<Record<EngineProbe['kind'], string>> = {
  vllm: 'Start vLLM with `--enable-auto-tool-choice --tool-call-parser <parser of the model>`.',
  sglang: 'Start SGLang with `--tool-call-parser <parser of the model>`.',
  llamacpp: 'Serve a model whose chat template takes tools, with `--jinja` where that is not the default.',
  openai: 'Start vLLM with `--enable-auto-tool-choice --tool-call-parser <parser of the model>`.',
}

function missingOf(
  kind: EngineProbe['kind'],
  gives: Given,
  tools: { readonly status: number; readonly body: LooseObject | null },
): EngineProbe['missing'] {
  const missing: Lack[] = []
  if (!gives.ids || !gives.promptIds) {
    missing.push({
      what: 'token ids',
      fix: `${idsFrom[kind]}; without ids calls are recorded as text and RL exports refuse them.`,
    })
  }
  if (!gives.logprobs) {
    missing.push({ what: 'logprobs', fix: 'Allow logprobs on the engine (vLLM: leave `--max-logprobs` above 0).' })
  }
  if (tools.status >= 400) {
    missing.push({
      what: `tool calls (${message(tools.body)})`,
      fix: toolsFrom[kind],
    })
  }
  return missing
}

function onlyModel(models: readonly string[], root: string): string {
  const [only, second] = models
  if (only !== undefined && second === undefined) return only
  throw new PaddockError(
    'CONFIG_INVALID',
    only === undefined
      ? `The engine at ${root} lists no model.`
      : `The engine at ${root} lists ${models.length} models.`,
    { fix: `Set MODEL to one of: ${models.slice(0, 10).join(', ') || 'the name of the model'}.` },
  )
}

function firstChoice(body: LooseObject | null): LooseObject {
  const choices = body?.['choices']
  return Array.isArray(choices) ? object(choices[0]) : {}
}

function message(body: LooseObject | null): string {
  const error = object(body?.['error'])
  const text = error['message'] ?? body?.['message']
  return typeof text === 'string' ? text.slice(0, 200).replace(/\.$/, '') : 'no reason given'
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function object(value: unknown): LooseObject {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
