import type { LooseObject } from '../../session/sampling.ts'
import type { ScoredIds } from '../contract.ts'
import type { PromptIds } from '../prompt-ids.ts'
import { askScore, checkedLogprobs, type ToldId, untrusted } from '../score.ts'

/**
 * `POST /v1/completions` with ids and `prompt_logprobs` (vLLM 0.32.0, `entrypoints/openai/completion/protocol.py`): a list, null first,
 * of `{id: {logprob}}`; with 0 alternatives the prompt's own id alone. One token is generated, because none is refused.
 */
export async function scoreVllm(
  root: string,
  apiKey: string | null,
  { ids, model }: { readonly ids: PromptIds; readonly model: string | null },
): Promise<ScoredIds> {
  const body =
    `{${model === null ? '' : `"model":${JSON.stringify(model)},`}"prompt":${ids.text},"max_tokens":1,"temperature":1,` +
    '"prompt_logprobs":0,"return_token_ids":true}'
  const answer = await askScore(root, '/v1/completions', apiKey, body)
  const choices: unknown = answer['choices']
  const choice: unknown = Array.isArray(choices) ? choices[0] : null
  const told: unknown = object(choice)['prompt_logprobs']
  if (!Array.isArray(told)) throw untrusted('there is no list of them')
  return { logprobs: checkedLogprobs(ids, told.map(entryOf)), weightVersion: null }
}

/** Of one id alone: with more than one nobody asked for, which is the prompt's would be a guess. */
function entryOf(entry: unknown): ToldId | null {
  const [only, second] = Object.entries(object(entry))
  if (only === undefined || second !== undefined) return null
  const [id, about] = only
  return { id: Number(id), logprob: object(about)['logprob'] }
}

function object(value: unknown): LooseObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}
