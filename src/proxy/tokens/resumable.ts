import type { ChatBody } from './chat-body.ts'

/** Members that mean the same for a whole answer and for the rest of one that was begun before. */
const harmless = new Set([
  'model',
  'messages',
  'tools',
  'parallel_tool_calls',
  'stream',
  'stream_options',
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'max_tokens',
  'max_completion_tokens',
  'stop_token_ids',
  'logprobs',
  'top_logprobs',
  'return_token_ids',
  'return_meta_info',
  'return_prompt_token_ids',
  'return_input_ids_in_sglext',
  'return_output_ids_in_sglext',
  'skip_special_tokens',
  'spaces_between_special_tokens',
  'include_reasoning',
  'add_generation_prompt',
  'continue_final_message',
  'chat_template_kwargs',
  'reasoning_effort',
  'cache_salt',
  'priority',
  'request_id',
  'user',
  'metadata',
  'store',
  'service_tier',
])

/** What a member may say without looking back at what was sampled before. */
const neutral: Readonly<Record<string, (value: unknown) => boolean>> = {
  n: (value) => value === 1,
  presence_penalty: (value) => value === 0,
  frequency_penalty: (value) => value === 0,
  repetition_penalty: (value) => value === 1,
  min_tokens: (value) => value === 0,
  stop: (value) => value === '' || (Array.isArray(value) && value.length === 0),
  tool_choice: (value) => value === 'auto' || value === 'none',
  response_format: (value) => typeof value === 'object' && value !== null && Reflect.get(value, 'type') === 'text',
  logit_bias: (value) => typeof value === 'object' && value !== null && Object.keys(value).length === 0,
}

/**
 * Whether an answer to this chat request can be ended anywhere and gone on with from its ids, and be the same sample.
 * Penalties over the output, grammars, seeds, stop strings and several choices look back at tokens that would then stand
 * in the prompt. What is not known is waited for.
 */
export function isResumable(chat: ChatBody): boolean {
  return chat.names.every((name) => {
    if (harmless.has(name)) return name !== 'tools' || !hasStrictTool(chat.text(name))
    const value: unknown = JSON.parse(chat.text(name) ?? 'null')
    return value === null || (Object.hasOwn(neutral, name) && neutral[name]?.(value) === true)
  })
}

/** A strict tool is a grammar from the first token of its call on. */
function hasStrictTool(tools: string | null): boolean {
  // Without the word there is none, and schemas are long.
  if (tools?.includes('"strict"') !== true) return false
  const list: unknown = JSON.parse(tools)
  return (
    Array.isArray(list) &&
    list.some((tool: unknown) => {
      const about: unknown = typeof tool === 'object' && tool !== null ? Reflect.get(tool, 'function') : null
      return typeof about === 'object' && about !== null && Reflect.get(about, 'strict') === true
    })
  )
}
