import type { LooseObject } from '../../session/sampling.ts'
import type { ScoredIds } from '../contract.ts'
import type { PromptIds } from '../prompt-ids.ts'
import { askScore, checkedLogprobs, type ToldId, untrusted } from '../score.ts'

/**
 * `POST /generate` with `logprob_start_len: 0` (`srt/managers/io_struct.py` GenerateReqInput; docs.sglang.io "Native APIs"):
 * `meta_info.input_token_logprobs` has a row `[logprob, id, text]` for each id, without a logprob for the first. Documented, not run
 * against a real server.
 */
export async function scoreSglang(
  root: string,
  apiKey: string | null,
  { ids, adapter }: { readonly ids: PromptIds; readonly adapter: string | null },
): Promise<ScoredIds> {
  const body =
    `{"input_ids":${ids.text},"sampling_params":{"max_new_tokens":1,"temperature":1},"return_logprob":true,` +
    `"logprob_start_len":0,"stream":false${adapter === null ? '' : `,"lora_path":${JSON.stringify(adapter)}`}}`
  const meta = object((await askScore(root, '/generate', apiKey, body))['meta_info'])
  const rows: unknown = meta['input_token_logprobs']
  if (!Array.isArray(rows)) throw untrusted('there is no list of them')
  const version = meta['weight_version']
  return {
    logprobs: checkedLogprobs(ids, rows.map(rowOf)),
    weightVersion: typeof version === 'string' ? version : null,
  }
}

function rowOf(row: unknown): ToldId | null {
  if (!Array.isArray(row)) return null
  const [logprob, id]: readonly unknown[] = row
  return { logprob, id }
}

function object(value: unknown): LooseObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}
