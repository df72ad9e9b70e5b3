import { templateMessages, templateTools } from '../../chat/messages.ts'
import { EngineError, validationError } from '../../errors.ts'
import { canonicalJson } from '../../json/lossless.ts'
import { readCount, readFlag, readList, readObject, readText } from '../../json/read.ts'
import { readSampling } from '../../generation/sampling.ts'
import { constraintOf, readToolChoice } from './tool-choice.ts'
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
    messages: templateMessages(messages, engine.profile.takesImages),
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
  if (model === undefined || model === engine.profile.model || engine.adapters.has(model)) return
  throw new EngineError(`The model \`${model}\` does not exist.`, {
    status: 404,
    type: 'NotFoundError',
    param: 'model',
  })
}

/** Template keyword arguments as plain values; numbers become doubles, which is what a template computes with. */
function plainKwargs(kwargs: JsonObject | undefined): Record<string, unknown> {
  return kwargs === undefined ? {} : (JSON.parse(canonicalJson(kwargs)) as Record<string, unknown>)
}
