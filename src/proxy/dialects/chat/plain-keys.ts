import { KeyTable } from './json-cursor.ts'

/** What may stand in a plain chunk, by number. */
export const key = {
  absent: 1,
  unread: 2,
  choices: 3,
  id: 4,
  model: 5,
  created: 6,
  usage: 7,
  promptIds: 8,
  index: 9,
  delta: 10,
  message: 11,
  finishReason: 12,
  stopReason: 13,
  tokenIds: 14,
  logprobs: 15,
  role: 16,
  content: 17,
  reasoning: 18,
  reasoningContent: 19,
  toolCalls: 20,
  entries: 21,
  token: 22,
  logprob: 23,
  bytes: 24,
} as const

/** `absent`: plain where it is null. `unread`: only a parser knows what it means. */
const { absent, unread } = key
export const rootKeys = new KeyTable(
  {
    choices: key.choices,
    id: key.id,
    model: key.model,
    created: key.created,
    usage: key.usage,
    prompt_token_ids: key.promptIds,
    error: absent,
    weight_version: absent,
  },
  ['object', 'system_fingerprint', 'service_tier', 'prompt_logprobs', 'kv_transfer_params'],
)
export const choiceKeys = new KeyTable({
  index: key.index,
  delta: key.delta,
  message: key.message,
  finish_reason: key.finishReason,
  stop_reason: key.stopReason,
  token_ids: key.tokenIds,
  logprobs: key.logprobs,
  routed_experts: absent,
  weight_version: absent,
  weight_versions: unread,
  prompt_token_ids: unread,
})
export const partKeys = new KeyTable(
  {
    role: key.role,
    content: key.content,
    reasoning: key.reasoning,
    reasoning_content: key.reasoningContent,
    refusal: absent,
    tool_calls: key.toolCalls,
  },
  ['annotations', 'audio', 'function_call'],
)
export const logprobsKeys = new KeyTable({ content: key.entries })
export const entryKeys = new KeyTable({ token: key.token, logprob: key.logprob, bytes: key.bytes }, ['top_logprobs'])
