import { dumpJson, toJson } from '../../json/lossless.ts'
import { readFlag, readList, readText } from '../../json/read.ts'
import { checkLength, uuidHex } from '../begin.ts'
import { readChatRequest } from './chat-request.ts'
import { structuredOutputs } from './tool-choice.ts'
import type { Engine } from '../../engine.ts'
import type { BadRender } from '../../options.ts'
import type { Exchange } from '../../http/exchange.ts'
import type { Json, JsonObject } from '../../json/lossless.ts'
import type { ChatRequest } from './chat-request.ts'

/**
 * `POST /v1/chat/completions/render`: a chat request in, a GenerateRequest out (vLLM
 * `entrypoints/scale_out/render/serving.py` at 04e47dbe; docs.vllm.ai v0.30.0 "Renderer APIs").
 */
export async function render(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  const request = await readChatRequest(rendered(body, engine.options.badRender), engine)
  // Rendered by the chat route's own renderer, so that what that one refuses is refused here.
  checkLength(request.promptIds.length, request, engine.options)
  const room = engine.options.maxModelLen - request.promptIds.length
  const answer: JsonObject = new Map<string, Json>([
    ['request_id', `chatcmpl-${uuidHex()}`],
    ['token_ids', toJson([...request.promptIds])],
    ['token_offsets', null],
    ['features', null],
    ['content_parts', null],
    ['sampling_params', samplingParams(body, request, request.maxTokens ?? room)],
    ['model', readText(body, 'model') ?? null],
    ['reasoning_ended', null],
    ['reasoning_parser_kwargs', null],
    ['return_token_ids', null],
    ['output_mode', 'tokens'],
    ['stream', request.stream],
    ['stream_options', request.stream ? (body.get('stream_options') ?? null) : null],
    ['cache_salt', readText(body, 'cache_salt') ?? null],
    ['priority', body.get('priority') ?? toJson(0)],
    ['kv_transfer_params', null],
    ['ec_transfer_params', null],
  ])
  // Written by our own writer, so that a schema inside keeps its number lexemes.
  exchange.text(dumpJson(answer), 200, { 'content-type': 'application/json' })
}

/** The request as a render route reads it that does something wrong. */
function rendered(body: JsonObject, how: BadRender | undefined): JsonObject {
  if (how === undefined || readFlag(body, 'continue_final_message') === true) return body
  const messages = readList(body, 'messages') ?? []
  const last = messages.at(-1)
  if (how === 'opens-turns') return new Map([...body, ['add_generation_prompt', true]])
  return last instanceof Map && last.get('role') === 'assistant'
    ? new Map([...body, ['messages', messages.slice(0, -1)]])
    : body
}

/** `SamplingParams.max_tokens`. */
const builtInMaxTokens = 16

/** The fields of vLLM's SamplingParams (`vllm/sampling_params.py`) that a chat request sets. */
function samplingParams(body: JsonObject, request: ChatRequest, maxTokens: number): JsonObject {
  const { params } = request
  const given = (key: string, fallback: number | null): Json => body.get(key) ?? toJson(fallback)
  const constraint = structuredOutputs(readList(body, 'tools') ?? [], request.constraint)
  return new Map<string, Json>([
    ['n', toJson(params.n)],
    ['presence_penalty', given('presence_penalty', 0)],
    ['frequency_penalty', given('frequency_penalty', 0)],
    ['repetition_penalty', given('repetition_penalty', 1)],
    ['temperature', given('temperature', 1)],
    ['top_p', given('top_p', 1)],
    ['top_k', given('top_k', 0)],
    ['min_p', given('min_p', 0)],
    ['seed', given('seed', null)],
    ['stop', toJson(params.stop)],
    ['stop_token_ids', toJson(params.stopTokenIds)],
    ['ignore_eos', readFlag(body, 'ignore_eos') ?? false],
    // What is as built in is left out (msgspec's `omit_defaults`, seen in vLLM 0.32.0); of the others no reader asks.
    ...(maxTokens === builtInMaxTokens ? [] : [['max_tokens', toJson(maxTokens)] as const]),
    ['min_tokens', given('min_tokens', 0)],
    ['logprobs', toJson(params.topLogprobs ?? null)],
    ['prompt_logprobs', null],
    ['detokenize', true],
    ['skip_special_tokens', params.skipSpecial],
    ['spaces_between_special_tokens', true],
    ['include_stop_str_in_output', params.includeStop],
    ['output_kind', toJson(request.stream ? 1 : 2)],
    ['structured_outputs', constraint],
    ['logit_bias', body.get('logit_bias') ?? null],
    ['allowed_token_ids', null],
    ['bad_words', []],
    ['extra_args', null],
  ])
}
