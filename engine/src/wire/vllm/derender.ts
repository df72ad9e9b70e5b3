import { validationError } from '../../errors.ts'
import { readCount, readFlag, readObject, readText } from '../../json/read.ts'
import { failDerender } from '../begin.ts'
import { chatFinish, chatMessage } from './chat-message.ts'
import { derenderChunk } from './derender-chunk.ts'
import { chatLogprobs, detokenizer, readChoices, settingOf } from './derender-parts.ts'
import type { Engine } from '../../engine.ts'
import type { Exchange } from '../../http/exchange.ts'
import type { Json, JsonObject } from '../../json/lossless.ts'

/**
 * `POST /v1/chat/completions/derender`: sampled ids back to a chat answer by the server's own parsers (vLLM
 * `entrypoints/scale_out/token_in_token_out/protocol.py` Derender*, docs.vllm.ai v0.32.0 "Derenderer APIs"). With
 * `stream: true` it takes one generate chunk and the state of the call before, which the client carries.
 */
export async function derender(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  failDerender(exchange, engine, body)
  const chat = readObject(body, 'chat_request') ?? new Map<string, Json>()
  if (readFlag(body, 'stream') === true) exchange.json(derenderChunk(body, chat, engine))
  else exchange.json(derenderWhole(body, chat, engine))
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
