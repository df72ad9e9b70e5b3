import { type LogprobKind, PaddockError } from '../../core/index.ts'
import type { LooseObject } from '../session/sampling.ts'
import { engineRoot, listedModels, tryEngine } from './http.ts'
import { probeLogprobKind } from './probe-logprobs.ts'

/** What an engine can do, found out by asking it. */
export interface EngineProbe {
  /** Root without `/v1`. */
  readonly url: string
  readonly kind: 'vllm' | 'openai'
  readonly models: readonly string[]
  /** The model that was asked. */
  readonly model: string
  readonly version: string | null
  readonly givesIds: boolean
  readonly givesPromptIds: boolean
  readonly givesLogprobs: boolean
  readonly givesToolCalls: boolean
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
  const [listed, about] = await Promise.all([
    tryEngine(root, '/v1/models', apiKey),
    tryEngine(root, '/version', apiKey),
  ])
  if (listed.status === 401 || listed.status === 403) {
    throw new PaddockError('ENGINE_ERROR', `The engine at ${root} refuses the key (${listed.status}).`, {
      fix: 'Set ENGINE_API_KEY to the key of the engine.',
    })
  }
  const models = listedModels(listed.body)
  const model = options.model ?? onlyModel(models, root)
  const ask = (more: LooseObject) =>
    tryEngine(root, '/v1/chat/completions', apiKey, {
      model,
      messages: [{ role: 'user', content: 'Say hello.' }],
      max_tokens: 8,
      ...more,
    })
  const rich = await ask({ return_token_ids: true, logprobs: true, top_logprobs: 0 })
  const plain = rich.status < 400 ? rich : await ask({})
  if (plain.status >= 400) {
    throw new PaddockError('ENGINE_ERROR', `The engine at ${root} answers ${plain.status}: ${message(plain.body)}.`)
  }
  const choice = firstChoice(rich.status < 400 ? rich.body : null)
  const givesIds = Array.isArray(choice['token_ids'])
  const givesPromptIds = Array.isArray(rich.body?.['prompt_token_ids'])
  const content = object(choice['logprobs'])['content']
  const givesLogprobs = Array.isArray(content) && content.length > 0
  const tools = await ask({ tools: [probeTool], tool_choice: 'auto' })
  const version = typeof about.body?.['version'] === 'string' ? about.body['version'] : null
  const kind = givesIds || version !== null ? 'vllm' : 'openai'
  const missing: { what: string; fix: string }[] = []
  if (!givesIds || !givesPromptIds) {
    missing.push({
      what: 'token ids',
      fix: 'Use vLLM 0.10.2 or newer (`return_token_ids`); without ids calls are recorded as text and RL exports refuse them.',
    })
  }
  if (!givesLogprobs) {
    missing.push({ what: 'logprobs', fix: 'Allow logprobs on the engine (vLLM: leave `--max-logprobs` above 0).' })
  }
  if (tools.status >= 400) {
    missing.push({
      what: `tool calls (${message(tools.body)})`,
      fix: 'Start vLLM with `--enable-auto-tool-choice --tool-call-parser <parser of the model>`.',
    })
  }
  return {
    url: root,
    kind,
    models,
    model,
    version,
    givesIds,
    givesPromptIds,
    givesLogprobs,
    givesToolCalls: tools.status < 400,
    logprobKind: givesLogprobs ? await probeLogprobKind(ask) : 'unknown',
    maxModelLen: maxModelLen(listed.body, model),
    missing,
  }
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

function maxModelLen(body: LooseObject | null, model: string): number | null {
  const data = body?.['data']
  if (!Array.isArray(data)) return null
  const found = data.map(object).find((item) => item['id'] === model)?.['max_model_len']
  return typeof found === 'number' ? found : null
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

function object(value: unknown): LooseObject {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
