import { validationError } from '../../errors.ts'
import { scoreIds } from '../../policy/score.ts'
import { readSampling } from '../../generation/sampling.ts'
import { parseJson } from '../../json/lossless.ts'
import { readCount, readFlag, readObject, readText, readTokenIds } from '../../json/read.ts'
import { begin } from '../begin.ts'
import { wireJson } from '../logprobs.ts'
import { EventStream, sendWhole } from '../stream.ts'
import { constraintFromSchema } from '../vllm/tool-choice.ts'
import { metaInfo } from './meta-info.ts'
import type { Engine } from '../../engine.ts'
import type { Choice } from '../../generation/choice.ts'
import type { Exchange } from '../../http/exchange.ts'
import type { Json, JsonObject } from '../../json/lossless.ts'

/** SGLang stops `/generate` after this many tokens unless told otherwise (`srt/sampling/sampling_params.py`). */
const DEFAULT_MAX_NEW_TOKENS = 128

/**
 * `POST /generate` with `input_ids` or `text` (SGLang `srt/managers/io_struct.py` GenerateReqInput,
 * docs.sglang.io "Sampling Parameters" and "Native APIs"). A stream repeats everything said so far in each event, as
 * SGLang does unless started with incremental streaming output.
 */
export async function sglangGenerate(exchange: Exchange, engine: Engine): Promise<void> {
  const body = await exchange.body()
  const sampling = samplingFields(readObject(body, 'sampling_params') ?? new Map())
  const { vocabulary } = engine.profile
  const text = readText(body, 'text')
  const ids = text === undefined ? readTokenIds(body, 'input_ids', vocabulary.size) : await vocabulary.encode(text)
  if (ids === undefined || ids.length === 0)
    throw validationError('Either text, input_ids or input_embeds should be provided.', 'input_ids')
  const stream = readFlag(body, 'stream') ?? false
  const logprobs = readFlag(body, 'return_logprob') ?? false
  const top = readCount(body, 'top_logprobs_num') ?? 0
  const schema = readText(sampling, 'json_schema')
  const begun = await begin(exchange, engine, {
    body,
    idPrefix: '',
    promptIds: ids,
    params: readSampling(sampling, logprobs ? top : undefined),
    maxTokens: readCount(sampling, 'max_new_tokens') ?? DEFAULT_MAX_NEW_TOKENS,
    maxTokensParam: 'max_new_tokens',
    stream,
    constraint: (view) => constraintFromSchema(schema === undefined ? null : parseJson(schema), view.tools),
  })
  if (begun === undefined) return
  const { generation, faults } = begun
  const from = readCount(body, 'logprob_start_len')
  const scores = logprobs && from !== undefined && from >= 0 ? await scoreIds(begun.promptIds, engine) : null
  const input = scores === null ? [] : inputRows(begun.promptIds, scores, from ?? 0)
  const asked = { input, logprobs, top, text: readFlag(body, 'return_text_in_logprobs') ?? false }
  const reply = (choice: Choice): Record<string, unknown> => ({
    text: choice.text,
    output_ids: [...choice.ids],
    meta_info: metaInfo(engine, begun, choice, asked),
  })
  if (!stream) {
    for await (const _step of generation.steps()) if (exchange.response.destroyed) return
    const replies = generation.choices.map(reply)
    await sendWhole(exchange, wireJson(replies.length === 1 ? replies[0] : replies, faults), faults)
    return
  }
  const events = new EventStream(exchange, faults)
  for await (const step of generation.steps()) {
    const choice = generation.choices[step.choice]
    if (choice === undefined) continue
    const drop = faults.find('drop_token_ids')
    const dropped = drop !== undefined && choice.ids.length % drop.every === 0
    const event = {
      ...reply(choice),
      ...(dropped ? { output_ids: null } : {}),
      ...(generation.choices.length > 1 ? { index: step.choice } : {}),
    }
    await events.send(wireJson(event, faults), step.finish === undefined ? 'token' : 'finish', choice.ids.length)
    if (events.over) return
  }
  await events.done()
}

/** `[logprob, id, text]` of each id of the prompt from a place on; nothing stands before the first. */
function inputRows(ids: Int32Array, scores: readonly (number | null)[], from: number): readonly unknown[] {
  return Array.from(ids.subarray(from), (id, at) => [scores[from + at] ?? null, id, null])
}

/** SGLang's names for what the shared reader calls otherwise. */
function samplingFields(given: JsonObject): JsonObject {
  const fields: JsonObject = new Map<string, Json>(given)
  const seed = given.get('sampling_seed')
  if (seed !== undefined) fields.set('seed', seed)
  const keep = given.get('no_stop_trim')
  if (keep !== undefined) fields.set('include_stop_str_in_output', keep)
  return fields
}
