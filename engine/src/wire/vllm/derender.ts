import { validationError } from '../../errors.ts'
import { JsonNumber } from '../../json/lossless.ts'
import { readCount, readFlag, readList, readObject, readText, readTokenIds } from '../../json/read.ts'
import { IncrementalText } from '../../tokenizer/incremental.ts'
import { answerParser } from '../../parsers/index.ts'
import { thinkingOpenIn, viewPrompt } from '../../chat/prompt-view.ts'
import { chatDelta, chatFinish, chatMessage } from './chat-message.ts'
import { readToolChoice } from './chat-request.ts'
import type { Engine } from '../../engine.ts'
import type { FinishReason } from '../../generation/choice.ts'
import type { Exchange } from '../../http/exchange.ts'
import type { Json, JsonObject } from '../../json/lossless.ts'
import type { AnswerPart } from '../../parsers/index.ts'
import type { MessageSetting } from './chat-message.ts'

/**
 * `POST /v1/chat/completions/derender`: sampled ids back to a chat answer by the server's own parsers (vLLM
 * `entrypoints/scale_out/token_in_token_out/protocol.py` Derender*, docs.vllm.ai v0.32.0 "Derenderer APIs"). With
 * `stream: true` it takes one generate chunk and the state of the call before, which the client carries.
 */
export async function derender(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  const chat = readObject(body, 'chat_request') ?? new Map<string, Json>()
  if (readFlag(body, 'stream') === true) exchange.json(derenderChunk(body, chat, engine))
  else exchange.json(derenderWhole(body, chat, engine))
}

interface GivenChoice {
  readonly index: number
  readonly ids: Int32Array
  readonly finish: FinishReason | undefined
  readonly logprobs: Json
}

function readChoices(answer: JsonObject, engine: Engine): GivenChoice[] {
  return (readList(answer, 'choices') ?? []).map((choice, at) => {
    if (!(choice instanceof Map)) throw validationError('Input should be a valid dictionary', `choices.${at}`)
    const finish = readText(choice, 'finish_reason')
    return {
      index: readCount(choice, 'index') ?? at,
      ids: readTokenIds(choice, 'token_ids', engine.profile.vocabulary.size) ?? new Int32Array(0),
      finish: finish === 'stop' || finish === 'length' || finish === 'abort' ? finish : undefined,
      logprobs: choice.get('logprobs') ?? null,
    }
  })
}

function settingOf(body: JsonObject, chat: JsonObject, engine: Engine): MessageSetting {
  const tools = readList(chat, 'tools') ?? []
  const { vocabulary, grammar } = engine.profile
  const prompt = readTokenIds(body, 'prompt_token_ids', vocabulary.size) ?? new Int32Array(0)
  return {
    toolChoice: readToolChoice(chat, tools),
    thinkingOpen: thinkingOpenIn(viewPrompt(prompt, vocabulary, grammar), vocabulary),
    includeReasoning: readFlag(chat, 'include_reasoning') ?? true,
    parallelToolCalls: readFlag(chat, 'parallel_tool_calls') ?? true,
    role: 'assistant',
  }
}

/** Control tokens are hidden, except where the family's tool parser needs them; a terminator is no text. */
function detokenizer(
  engine: Engine,
  setting: MessageSetting,
): { text: (ids: Iterable<number>) => string; end: () => string } {
  const { profile } = engine
  const incremental = new IncrementalText(profile.vocabulary, {
    skipSpecial: setting.toolChoice.kind === 'none' || profile.callTags.close !== undefined,
  })
  const ends = new Set([profile.terminator.afterCall, profile.terminator.afterText])
  return {
    text: (ids) => [...ids].map((id) => (ends.has(id) ? '' : incremental.push(id))).join(''),
    end: () => incremental.end(),
  }
}

function derenderWhole(body: JsonObject, chat: JsonObject, engine: Engine): unknown {
  const answer = readObject(body, 'generate_response')
  if (answer === undefined) throw validationError('Field required', 'generate_response')
  const setting = settingOf(body, chat, engine)
  const given = readChoices(answer, engine)
  const completion = given.reduce((sum, choice) => sum + choice.ids.length, 0)
  const prompt = readCount(body, 'prompt_tokens') ?? 0
  const stops = chat.get('stop') ?? []
  return {
    id: readText(answer, 'request_id') ?? '',
    object: 'chat.completion',
    created: readCount(answer, 'created') ?? Math.floor(Date.now() / 1000),
    model: readText(body, 'model') ?? engine.profile.model,
    choices: given.map((choice) => {
      const decoded = detokenizer(engine, setting)
      const text = cutAtStop(decoded.text(choice.ids) + decoded.end(), Array.isArray(stops) ? stops : [stops])
      const message = chatMessage(text, engine.profile, setting)
      return {
        index: choice.index,
        message,
        logprobs: chatLogprobs(choice.logprobs, engine),
        finish_reason: chatFinish(choice.finish ?? 'stop', 'tool_calls' in message, setting.toolChoice),
        stop_reason: null,
        token_ids: null,
        routed_experts: null,
      }
    }),
    service_tier: null,
    system_fingerprint: null,
    usage: {
      prompt_tokens: prompt,
      total_tokens: prompt + completion,
      completion_tokens: completion,
      prompt_tokens_details: null,
    },
    prompt_logprobs: null,
    prompt_token_ids: null,
    prompt_text: null,
    kv_transfer_params: null,
  }
}

/** Ids run past a matched stop string; the message does not. */
function cutAtStop(text: string, stops: readonly Json[]): string {
  const places = stops.flatMap((stop) =>
    typeof stop === 'string' && stop !== '' && text.includes(stop) ? [text.indexOf(stop)] : [],
  )
  return places.length === 0 ? text : text.slice(0, Math.min(...places))
}

/** Generate logprobs with ids become chat logprobs with text. */
function chatLogprobs(given: Json, engine: Engine): unknown {
  const content = given instanceof Map ? given.get('content') : undefined
  if (!Array.isArray(content)) return null
  const entry = (item: Json): Record<string, unknown> | undefined => {
    if (!(item instanceof Map)) return undefined
    const named = /^token_id:(\d+)$/.exec(readText(item, 'token') ?? '')?.[1]
    const id = readCount(item, 'token_id') ?? (named === undefined ? undefined : Number(named))
    const logprob = item.get('logprob')
    const text = id === undefined ? '' : engine.profile.vocabulary.decode([id])
    return {
      token: text,
      logprob: logprob instanceof JsonNumber ? logprob.value : null,
      bytes: [...Buffer.from(text, 'utf8')],
    }
  }
  return {
    content: content.map((item) => {
      const top = item instanceof Map ? item.get('top_logprobs') : undefined
      return { ...entry(item), top_logprobs: Array.isArray(top) ? top.map(entry) : [] }
    }),
  }
}

function derenderChunk(body: JsonObject, chat: JsonObject, engine: Engine): unknown {
  const chunk = readObject(body, 'generate_chunk')
  if (chunk === undefined) throw validationError('Field required', 'generate_chunk')
  if (readTokenIds(body, 'prompt_token_ids', engine.profile.vocabulary.size) === undefined) {
    throw validationError(
      'prompt_token_ids is required for streaming derender when a tool or reasoning parser is configured',
      'prompt_token_ids',
    )
  }
  const setting = settingOf(body, chat, engine)
  const state = readObject(body, 'stream_state') ?? new Map<string, Json>()
  const seen = [...(readTokenIds(state, 'output_token_ids', engine.profile.vocabulary.size) ?? [])]
  const lengths = (readList(state, 'output_chunk_lens') ?? []).flatMap((length) =>
    length instanceof JsonNumber ? [length.value] : [],
  )
  const callIds = (readList(state, 'last_tool_call_ids') ?? []).filter((id) => typeof id === 'string')
  const choice = readChoices(chunk, engine)[0]
  const decoded = detokenizer(engine, setting)
  const parser = answerParser(engine.profile, setting.toolChoice, setting.thinkingOpen)
  let at = 0
  let called = readFlag(state, 'tools_streamed') ?? false
  for (const length of lengths) {
    parser.push(decoded.text(seen.slice(at, at + length)))
    at += length
  }
  const parts: AnswerPart[] = choice === undefined ? [] : parser.push(decoded.text(choice.ids))
  if (choice?.finish !== undefined) parts.push(...parser.push(decoded.end()), ...parser.end())
  called ||= parts.some((part) => part.kind === 'call')
  const delta = pinCallIds(chatDelta(parts, setting) ?? {}, callIds)
  const roleSent = readFlag(state, 'role_sent') ?? false
  const given = choice === undefined ? [] : [...choice.ids]
  const usage = chunk.get('usage') ?? null
  return {
    chunk: {
      id: readText(chunk, 'request_id') ?? '',
      object: 'chat.completion.chunk',
      created: Math.floor(Date.now() / 1000),
      model: readText(body, 'model') ?? engine.profile.model,
      choices:
        choice === undefined
          ? []
          : [
              {
                index: choice.index,
                delta: roleSent ? delta : { role: 'assistant', ...delta },
                logprobs: chatLogprobs(choice.logprobs, engine),
                finish_reason:
                  choice.finish === undefined ? null : chatFinish(choice.finish, called, setting.toolChoice),
                token_ids: null,
              },
            ],
      ...(usage instanceof Map
        ? {
            usage: Object.fromEntries(
              [...usage].map(([key, value]) => [key, value instanceof JsonNumber ? value.value : null]),
            ),
          }
        : {}),
    },
    stream_state: {
      prev_tokens: [],
      prefix_offset: 0,
      read_offset: 0,
      role_sent: roleSent || choice !== undefined,
      logprob_context_token_ids: [],
      logprob_text_offset: 0,
      output_token_ids: [...seen, ...given],
      output_chunk_lens: given.length === 0 ? lengths : [...lengths, given.length],
      tools_streamed: called,
      last_tool_call_ids: callIds,
    },
  }
}

/** A call keeps the id of its first appearance; a new one's id is added to `known`. */
function pinCallIds(delta: Record<string, unknown>, known: string[]): Record<string, unknown> {
  const calls = delta['tool_calls']
  if (!Array.isArray(calls)) return delta
  for (const call of calls) {
    const { index, id }: { index: number; id?: string } = call
    if (id !== undefined) known[index] ??= id
  }
  return delta
}
