import { parseEngineJson } from '../../dialects/chat/answer.ts'
import type { LooseObject } from '../../session/sampling.ts'
import { idsOfRows } from './generate.ts'

/**
 * SGLang's chat answers in the shape of vLLM's with `return_token_ids`, which is what the proxy reads
 * (`srt/entrypoints/openai/protocol.py` at 004c82e0, `serving_chat.py`). Ids and logprobs come from `meta_info`, whose
 * rows are `[logprob, id, text]`: some versions cut `logprobs.content` short.
 */
export function wholeReply(payload: Buffer): Buffer {
  const root = parseEngineJson(payload)
  const choices = root?.['choices']
  if (root === null || !Array.isArray(choices)) return payload
  const { metadata, sglext, ...rest } = root
  const ext = object(sglext)
  const promptIds = object(choices[0])['prompt_token_ids'] ?? ext['input_ids']
  return Buffer.from(
    JSON.stringify({
      ...rest,
      ...(Array.isArray(promptIds) ? { prompt_token_ids: promptIds } : {}),
      choices: choices.map((choice: unknown, position) =>
        wholeChoice(object(choice), listAt(ext['output_ids'], position)),
      ),
      usage: usageOf(root['usage']),
      ...versionOf(object(metadata)['weight_version']),
    }),
  )
}

function wholeChoice(choice: LooseObject, extIds: readonly unknown[] | null): LooseObject {
  const { meta_info, matched_stop, prompt_token_ids: _prompt, hidden_states: _hidden, token_ids, ...rest } = choice
  const meta = object(meta_info)
  const told = meta['output_token_logprobs']
  // What is no row is a token without id and logprob: left out, it would shift the others.
  const rows = Array.isArray(told) ? told.map((row: unknown): unknown[] => (Array.isArray(row) ? row : [])) : null
  const list = Array.isArray(token_ids) ? token_ids : extIds
  const ids = rows === null ? list : idsOfRows(rows, list)
  return {
    ...rest,
    message: wholeMessage(object(choice['message'])),
    ...(rows === null ? {} : { logprobs: { content: entriesOf(rows, meta, choice['logprobs']) } }),
    stop_reason: typeof matched_stop === 'string' ? matched_stop : null,
    ...(ids === null ? {} : { token_ids: ids }),
    ...(Array.isArray(meta['weight_versions']) ? { weight_versions: meta['weight_versions'] } : {}),
    ...versionOf(meta['weight_version']),
    ...(typeof meta['routed_experts'] === 'string' ? { routed_experts: meta['routed_experts'] } : {}),
  }
}

function wholeMessage(message: LooseObject): LooseObject {
  const { tool_calls, ...rest } = withoutNulls(message)
  if (!Array.isArray(tool_calls)) return { content: null, ...rest }
  return {
    content: null,
    ...rest,
    tool_calls: tool_calls.map((call: unknown) => {
      const { index: _index, ...one } = object(call)
      return one
    }),
  }
}

/** Rows as logprob entries of a chat answer; their texts from the answer's own where the rows bring none. */
function entriesOf(rows: readonly unknown[][], meta: LooseObject, logprobs: unknown): readonly LooseObject[] {
  const told = object(logprobs)['content']
  const shown: readonly unknown[] = Array.isArray(told) && told.length === rows.length ? told : []
  const tops = Array.isArray(meta['output_top_logprobs']) ? meta['output_top_logprobs'] : []
  return rows.map((row, at) => ({
    ...entryOf(row, object(shown[at])['token']),
    top_logprobs: (listAt(tops, at) ?? []).filter(Array.isArray).map((one: unknown[]) => entryOf(one, undefined)),
  }))
}

function entryOf(row: readonly unknown[], shown: unknown): LooseObject {
  const [logprob, id, text] = row
  const token = typeof text === 'string' ? text : typeof shown === 'string' ? shown : ''
  return { token, token_id: id, logprob, bytes: [...Buffer.from(token)] }
}

/**
 * The events of an SGLang chat stream as vLLM's. Its ids come in one `sglext` event behind the finishing ones, so those are
 * held until then: nobody may act on them before the ids are committed anyway.
 */
export class StreamedReply {
  private held: { readonly root: LooseObject; readonly choices: readonly LooseObject[] }[] = []

  /** The payloads that can be told now. */
  event(payload: Buffer): readonly Buffer[] {
    const root = parseEngineJson(payload)
    const choices = root?.['choices']
    if (root === null || !Array.isArray(choices)) return [...this.release({}), payload]
    const ext = object(root['sglext'])
    if (root['sglext'] != null) return this.release(ext)
    const { usage, ...rest } = root
    const read = choices.map((choice: unknown) => deltaChoice(object(choice)))
    if (read.some((choice) => typeof choice['finish_reason'] === 'string')) {
      this.held.push({ root: { ...rest, ...usageMember(usage) }, choices: read })
      return []
    }
    const shown = Buffer.from(JSON.stringify({ ...rest, choices: read, ...usageMember(usage) }))
    return choices.length === 0 ? [...this.release({}), shown] : [shown]
  }

  /** What is held at the end of a stream that brought no ids. */
  end(): readonly Buffer[] {
    return this.release({})
  }

  private release(ext: LooseObject): readonly Buffer[] {
    const { held } = this
    this.held = []
    const routed = typeof ext['routed_experts'] === 'string' ? { routed_experts: ext['routed_experts'] } : {}
    return held.map(({ root, choices }, at) =>
      Buffer.from(
        JSON.stringify({
          ...root,
          ...(at === 0 && Array.isArray(ext['input_ids']) ? { prompt_token_ids: ext['input_ids'] } : {}),
          choices: choices.map((choice) => {
            const ids = listAt(ext['output_ids'], Number(choice['index'] ?? 0))
            return { ...choice, ...(ids === null ? {} : { token_ids: ids }), ...(at === 0 ? routed : {}) }
          }),
        }),
      ),
    )
  }
}

function deltaChoice(choice: LooseObject): LooseObject {
  const { matched_stop, delta, ...rest } = choice
  const { tool_calls, ...shown } = withoutNulls(object(delta))
  return {
    ...rest,
    delta: {
      ...shown,
      ...(Array.isArray(tool_calls) ? { tool_calls: tool_calls.map((call: unknown) => callPart(object(call))) } : {}),
    },
    ...(typeof matched_stop === 'string' ? { stop_reason: matched_stop } : {}),
  }
}

/** SGLang says null where a part of a call is not repeated. */
function callPart(call: LooseObject): LooseObject {
  const { function: fn, ...rest } = withoutNulls(call)
  return { ...rest, function: withoutNulls(object(fn)) }
}

function usageMember(usage: unknown): LooseObject {
  return usage === null || usage === undefined ? {} : { usage: usageOf(usage) }
}

/** SGLang counts thinking beside the others (`usage.reasoning_tokens`), OpenAI's shape among the details. */
function usageOf(usage: unknown): unknown {
  const { reasoning_tokens, ...rest } = object(usage)
  if (typeof reasoning_tokens !== 'number' || 'completion_tokens_details' in rest) return usage
  return { ...rest, completion_tokens_details: { reasoning_tokens } }
}

function versionOf(version: unknown): LooseObject {
  return typeof version === 'string' || typeof version === 'number' ? { weight_version: String(version) } : {}
}

function withoutNulls(value: LooseObject): LooseObject {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null))
}

function listAt(value: unknown, at: number): readonly unknown[] | null {
  const one: unknown = Array.isArray(value) ? value[at] : null
  return Array.isArray(one) ? one : null
}

function object(value: unknown): LooseObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}
