import { parseEngineJson } from '../../dialects/chat/answer.ts'
import { noId, tokenIdOf } from '../../dialects/chat/wire-values.ts'
import type { LooseObject } from '../../session/sampling.ts'
import type { PromptIds } from '../prompt-ids.ts'
import type { ChatText, Generated, GeneratedPart } from '../token-engine.ts'

/** Chat members by their names in SGLang's sampling parameters (`srt/sampling/sampling_params.py`). */
const samplingNames: Readonly<Record<string, string>> = {
  temperature: 'temperature',
  top_p: 'top_p',
  top_k: 'top_k',
  min_p: 'min_p',
  frequency_penalty: 'frequency_penalty',
  presence_penalty: 'presence_penalty',
  repetition_penalty: 'repetition_penalty',
  max_completion_tokens: 'max_new_tokens',
  max_tokens: 'max_new_tokens',
  min_tokens: 'min_new_tokens',
  stop: 'stop',
  stop_token_ids: 'stop_token_ids',
  ignore_eos: 'ignore_eos',
  logit_bias: 'logit_bias',
  n: 'n',
  seed: 'sampling_seed',
  custom_params: 'custom_params',
}

/**
 * `POST /generate` for ids (`srt/managers/io_struct.py` GenerateReqInput). Values keep their bytes. Special tokens stay in
 * the text, because the parsers look for them, and a matched stop string too, because the ids have it.
 */
export function generateBody(chat: ChatText, ids: PromptIds, spent = 0): Buffer {
  const params = new Map<string, string>([
    ['skip_special_tokens', 'false'],
    ['spaces_between_special_tokens', 'false'],
    ['no_stop_trim', 'true'],
  ])
  for (const [name, theirs] of Object.entries(samplingNames)) {
    const value = chat.text(name)
    if (value !== null && !params.has(theirs)) params.set(theirs, value)
  }
  const most = params.get('max_new_tokens')
  if (most !== undefined && spent > 0) params.set('max_new_tokens', String(Number(most) - spent))
  const sampling = [...params].map(([name, value]) => `${JSON.stringify(name)}:${value}`).join()
  const top = chat.text('top_logprobs') ?? '0'
  return Buffer.from(
    `{"input_ids":${ids.text},"sampling_params":{${sampling}},"return_logprob":true,"logprob_start_len":-1,` +
      `"top_logprobs_num":${top},"return_text_in_logprobs":true,"stream":false}`,
  )
}

/** A whole answer of `/generate`; with several choices it is a list (`tokenizer_manager.py`, `_handle_batch_request`). */
export function readGenerated(payload: Buffer): Generated | null {
  const wrapped = parseEngineJson(Buffer.concat([Buffer.from('{"answers":'), payload, Buffer.from('}')]))
  const answers = wrapped?.['answers']
  if (answers === null || typeof answers !== 'object' || answers === undefined) return null
  const list = (Array.isArray(answers) ? answers : [answers]).map(object)
  const parts = list.map(readPart)
  const [first] = list
  const prompt = number(object(first?.['meta_info'])['prompt_tokens'])
  const counts = list.map((one) => number(object(one['meta_info'])['completion_tokens']))
  const known = prompt !== null && counts.every((count) => count !== null)
  const completion = counts.reduce<number>((sum, count) => sum + (count ?? 0), 0)
  return {
    parts,
    promptIds: null,
    usage: known ? { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion } : null,
    created: null,
    model: null,
    error: isObject(first?.['error']) ? first['error'] : null,
  }
}

function readPart(answer: LooseObject, index: number): GeneratedPart {
  const meta = object(answer['meta_info'])
  const told = meta['output_token_logprobs']
  const rows = Array.isArray(told) ? told.map((row: unknown): unknown[] => (Array.isArray(row) ? row : [])) : []
  const tops = Array.isArray(meta['output_top_logprobs']) ? meta['output_top_logprobs'] : []
  const ids = answer['output_ids']
  const finish = object(meta['finish_reason'])
  const spans = Array.isArray(meta['weight_versions']) ? meta['weight_versions'].filter(isObject) : []
  return {
    index,
    ids: rows.length > 0 ? idsOfRows(rows, ids).map(tokenIdOf) : Array.isArray(ids) ? ids.map(tokenIdOf) : [],
    logprobs: rows.map(([logprob]) => number(logprob)),
    entries: rows.map((row, at) => ({
      ...entryOf(row),
      top_logprobs: (Array.isArray(tops[at]) ? tops[at] : []).filter(Array.isArray).map(entryOf),
    })),
    finishReason: typeof finish['type'] === 'string' ? finish['type'] : null,
    stopReason: typeof finish['matched'] === 'string' ? finish['matched'] : null,
    weightVersions:
      spans.length > 0
        ? spans.map((span) => ({
            version: String(span['version']),
            start: tokenIdOf(span['start']),
            end: tokenIdOf(span['end']),
          }))
        : // One version alone is that of the end, and says nothing about the beginning.
          [],
    routedExperts: typeof meta['routed_experts'] === 'string' ? meta['routed_experts'] : null,
    text: typeof answer['text'] === 'string' ? answer['text'] : null,
  }
}

/**
 * The ids of rows `[logprob, id, text]`. Where a list beside them tells another id of a token, nobody knows which was sampled:
 * that is none.
 */
export function idsOfRows(rows: readonly (readonly unknown[])[], beside: unknown): readonly unknown[] {
  const list: readonly unknown[] = Array.isArray(beside) && beside.length === rows.length ? beside : []
  return rows.map(([, id], at) => (list.length === 0 || list[at] === id ? (id ?? null) : noId))
}

function entryOf([logprob, id, text]: readonly unknown[]): LooseObject {
  const token = typeof text === 'string' ? text : ''
  return { token, token_id: id, logprob, bytes: [...Buffer.from(token)] }
}

function number(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

function isObject(value: unknown): value is LooseObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function object(value: unknown): LooseObject {
  return isObject(value) ? value : {}
}
