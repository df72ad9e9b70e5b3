import { validationError } from '../../errors.ts'
import { JsonNumber } from '../../json/lossless.ts'
import { readFlag, readList, readObject, readText, readTokenIds } from '../../json/read.ts'
import { answerParser } from '../../parsers/index.ts'
import { chatDelta, chatFinish } from './chat-message.ts'
import { chatLogprobs, detokenizer, readChoices, settingOf } from './derender-parts.ts'
import type { Engine } from '../../engine.ts'
import type { Json, JsonObject } from '../../json/lossless.ts'
import type { AnswerPart } from '../../parsers/index.ts'

/**
 * One chunk of a generate stream to one chat chunk. The state holds all ids so far with their chunk lengths: a fresh parser
 * is fed with them again each time, as vLLM's `DerenderStreamState` describes. Throws a 400 without `prompt_token_ids`.
 */
export function derenderChunk(body: JsonObject, chat: JsonObject, engine: Engine): unknown {
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
