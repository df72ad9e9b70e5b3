import { templateMessages, templateTools } from '../../chat/messages.ts'
import { EngineError, validationError } from '../../errors.ts'
import { canonicalJson, toJson } from '../../json/lossless.ts'
import { readCount, readFlag, readList, readObject, readText } from '../../json/read.ts'
import { readSampling } from '../../generation/sampling.ts'
import type { Engine } from '../../engine.ts'
import type { SamplingParams } from '../../generation/sampling.ts'
import type { Json, JsonObject } from '../../json/lossless.ts'
import type { ToolChoice } from '../../parsers/index.ts'
import type { Constraint } from '../../policy/policy.ts'

/** A chat request as far as the engine reads it (vLLM `entrypoints/openai/chat_completion/protocol.py`). */
export interface ChatRequest {
  readonly promptIds: Int32Array
  readonly params: SamplingParams
  /** As asked; undefined means up to the context length. */
  readonly maxTokens: number | undefined
  readonly maxTokensParam: 'max_tokens' | 'max_completion_tokens'
  readonly truncatePromptTokens: number | undefined
  readonly toolChoice: ToolChoice
  readonly constraint: Constraint
  readonly parallelToolCalls: boolean
  readonly stream: boolean
  readonly includeUsage: boolean
  readonly continuousUsage: boolean
  readonly returnTokenIds: boolean
  readonly tokensAsIds: boolean
  readonly includeReasoning: boolean
  /** The role that answers: of the final message when that is continued. */
  readonly role: string
}

/**
 * Reads a chat request and renders its prompt. Throws 404 for another model, 400 for fields that vLLM refuses.
 * `body.messages` and `body.tools` reach the template losslessly. `given` ids take the place of rendering.
 */
export async function readChatRequest(body: JsonObject, engine: Engine, given?: Int32Array): Promise<ChatRequest> {
  checkModel(body, engine)
  const tools = readList(body, 'tools') ?? []
  const toolChoice = readToolChoice(body, tools)
  const topLogprobs = readCount(body, 'top_logprobs')
  const wantsLogprobs = readFlag(body, 'logprobs') ?? false
  if (topLogprobs !== undefined && topLogprobs > 0 && !wantsLogprobs) {
    throw validationError('when using `top_logprobs`, `logprobs` must be set to true.', 'top_logprobs')
  }
  if (readText(body, 'chat_template') !== undefined) {
    throw new EngineError(
      'Chat template is passed with request, but --trust-request-chat-template is not set. Refused request with untrusted chat template.',
    )
  }
  const sampling = readSampling(body, wantsLogprobs ? (topLogprobs ?? 0) : undefined)
  const streamOptions = readObject(body, 'stream_options') ?? new Map<string, Json>()
  const completion = readCount(body, 'max_completion_tokens')
  const addGenerationPrompt = readFlag(body, 'add_generation_prompt') ?? true
  const messages = readList(body, 'messages') ?? []
  const last = messages.at(-1)
  return {
    promptIds: given ?? (await renderPrompt(body, engine)),
    // The Llama parser finds calls by a control token, so vLLM stops hiding those when tools are offered.
    params: {
      ...sampling,
      skipSpecial: sampling.skipSpecial && (toolChoice.kind === 'none' || engine.profile.callTags.close !== undefined),
    },
    maxTokens: completion ?? readCount(body, 'max_tokens'),
    maxTokensParam: completion === undefined ? 'max_tokens' : 'max_completion_tokens',
    truncatePromptTokens: readCount(body, 'truncate_prompt_tokens'),
    toolChoice,
    constraint: constraintOf(body, toolChoice),
    parallelToolCalls: readFlag(body, 'parallel_tool_calls') ?? true,
    stream: readFlag(body, 'stream') ?? false,
    includeUsage: readFlag(streamOptions, 'include_usage') ?? false,
    continuousUsage: readFlag(streamOptions, 'continuous_usage_stats') ?? false,
    returnTokenIds: readFlag(body, 'return_token_ids') ?? false,
    tokensAsIds: readFlag(body, 'return_tokens_as_token_ids') ?? false,
    includeReasoning: readFlag(body, 'include_reasoning') ?? true,
    role: addGenerationPrompt || !(last instanceof Map) ? 'assistant' : (readText(last, 'role') ?? 'assistant'),
  }
}

/** Prompt ids of a body with `messages`, as the chat, render and tokenize routes share them. */
export async function renderPrompt(body: JsonObject, engine: Engine): Promise<Int32Array> {
  const messages = readList(body, 'messages')
  if (messages === undefined) throw validationError('Field required', 'messages')
  const text = engine.profile.template.render({
    messages: templateMessages(messages),
    tools: templateTools(readList(body, 'tools') ?? []),
    addGenerationPrompt: readFlag(body, 'add_generation_prompt') ?? true,
    continueFinalMessage: readFlag(body, 'continue_final_message') ?? false,
    kwargs: plainKwargs(readObject(body, 'chat_template_kwargs')),
  })
  return engine.profile.vocabulary.encode(text)
}

/** vLLM answers 404 to a model it does not serve (`entrypoints/openai/models/serving.py`). */
export function checkModel(body: JsonObject, engine: Engine): void {
  const model = readText(body, 'model')
  if (model === undefined || model === engine.profile.model) return
  throw new EngineError(`The model \`${model}\` does not exist.`, {
    status: 404,
    type: 'NotFoundError',
    param: 'model',
  })
}

/** `tool_choice` with vLLM's defaults: `auto` where tools are offered, `none` where not. */
export function readToolChoice(body: JsonObject, tools: readonly Json[]): ToolChoice {
  const given = body.get('tool_choice') ?? (tools.length > 0 ? 'auto' : 'none')
  if (given === 'none') return { kind: 'none' }
  if (tools.length === 0) throw validationError('When using `tool_choice`, `tools` must be set.', 'tool_choice')
  if (given === 'auto' || given === 'required') return { kind: given }
  const fn = given instanceof Map ? readObject(given, 'function') : undefined
  const name = fn === undefined ? undefined : readText(fn, 'name')
  if (name === undefined) throw validationError('Invalid value for `tool_choice`', 'tool_choice')
  const offered = tools.some((tool) => tool instanceof Map && nameOfTool(tool) === name)
  if (!offered)
    throw validationError(
      'The tool specified in `tool_choice` does not match any of the specified `tools`',
      'tool_choice',
    )
  return { kind: 'named', name }
}

/** The answer form that a tool choice or response format leads to. */
export function constraintOf(body: JsonObject, choice: ToolChoice): Constraint {
  if (choice.kind === 'required') return { kind: 'required' }
  if (choice.kind === 'named') return { kind: 'named', name: choice.name }
  const format = readObject(body, 'response_format')
  const kind = format === undefined ? 'text' : readText(format, 'type')
  if (format === undefined || kind === 'text') return { kind: 'free' }
  const schema = kind === 'json_schema' ? readObject(format, 'json_schema')?.get('schema') : undefined
  return { kind: 'json', schema: schema ?? new Map([['type', 'object']]) }
}

/** The grammar vLLM compiles a forced tool choice to (`entrypoints/openai/tool_parsers/utils.py`). */
export function structuredOutputs(tools: readonly Json[], constraint: Constraint): Json {
  const offered = tools.flatMap((tool) => (tool instanceof Map ? [readObject(tool, 'function') ?? tool] : []))
  if (constraint.kind === 'json') return new Map([['json', constraint.schema]])
  if (constraint.kind === 'named') {
    const named = offered.find((fn) => fn.get('name') === constraint.name)
    return new Map([['json', named?.get('parameters') ?? new Map()]])
  }
  if (constraint.kind === 'free') return null
  const anyOf = offered.map((fn): Json => {
    const properties: JsonObject = new Map<string, Json>([
      ['name', toJson({ type: 'string', enum: [fn.get('name')] })],
      ['parameters', fn.get('parameters') ?? toJson({ type: 'object', properties: {} })],
    ])
    return new Map<string, Json>([
      ['properties', properties],
      ['required', ['name', 'parameters']],
    ])
  })
  const items: JsonObject = new Map<string, Json>([
    ['type', 'object'],
    ['anyOf', anyOf],
  ])
  const list = new Map<string, Json>([...Object.entries({ type: 'array' }), ['minItems', toJson(1)], ['items', items]])
  return new Map([['json', list]])
}

/** The reverse of `structuredOutputs`, for requests that bring ids instead of messages. */
export function constraintFromSchema(schema: Json, tools: readonly JsonObject[]): Constraint {
  if (!(schema instanceof Map)) return { kind: 'free' }
  const items = schema.get('items')
  if (schema.get('type') === 'array' && items instanceof Map && items.has('anyOf')) return { kind: 'required' }
  const wanted = canonicalJson(schema)
  const named = tools
    .map((tool) => readObject(tool, 'function') ?? tool)
    .find((fn) => canonicalJson(fn.get('parameters') ?? null) === wanted)
  const name = named?.get('name')
  return typeof name === 'string' ? { kind: 'named', name } : { kind: 'json', schema }
}

function nameOfTool(tool: JsonObject): string | undefined {
  const fn = readObject(tool, 'function')
  return fn === undefined ? undefined : readText(fn, 'name')
}

/** Template keyword arguments as plain values; numbers become doubles, which is what a template computes with. */
function plainKwargs(kwargs: JsonObject | undefined): Record<string, unknown> {
  return kwargs === undefined ? {} : (JSON.parse(canonicalJson(kwargs)) as Record<string, unknown>)
}
