import { EngineError } from '../../errors.ts'
import { templateMessages, templateTools } from '../../chat/messages.ts'
import { canonicalJson } from '../../json/lossless.ts'
import { readFlag, readList, readObject, readText } from '../../json/read.ts'
import type { Engine } from '../../engine.ts'
import type { Json, JsonObject } from '../../json/lossless.ts'

/**
 * Prompt ids of a body with `messages` as SGLang renders them (`srt/entrypoints/chat_input/renderers.py` at 3ba38dc0,
 * before that `serving_chat.py`): a new turn is always opened, `add_generation_prompt` is not read, and an assistant
 * message at the end becomes a user message, or with `continue_final_message` text behind the opened turn.
 */
export async function sglangPrompt(body: JsonObject, engine: Engine): Promise<Int32Array> {
  const given = readList(body, 'messages')
  if (given === undefined) throw new EngineError("Exactly one of 'prompt' or 'messages' must be provided.")
  const messages = templateMessages(given, engine.profile.takesImages)
  const last = messages.at(-1)
  let prefix = ''
  if (last?.role === 'assistant') {
    messages.pop()
    if (readFlag(body, 'continue_final_message') === true) prefix = last.content
    else messages.push({ role: 'user', content: last.content, reasoning: '', tool_calls: undefined })
  }
  const text = engine.profile.template.render({
    messages,
    tools: templateTools(readList(body, 'tools') ?? []),
    addGenerationPrompt: true,
    continueFinalMessage: false,
    kwargs: templateArguments(body),
  })
  const { vocabulary } = engine.profile
  const ids = await vocabulary.encode(text)
  return prefix === '' ? ids : Int32Array.from([...ids, ...(await vocabulary.encode(prefix))])
}

/**
 * `chat_template_kwargs` and what a reasoning effort adds to them (`openai/protocol.py`, `normalize_reasoning_inputs`):
 * any effort but `none` switches thinking on under both names that templates look for.
 */
function templateArguments(body: JsonObject): Record<string, unknown> {
  const kwargs = readObject(body, 'chat_template_kwargs') ?? new Map<string, Json>()
  const effort = readText(body, 'reasoning_effort')
  const thinks = effort === undefined ? {} : { thinking: effort !== 'none', enable_thinking: effort !== 'none' }
  const given: Record<string, unknown> = JSON.parse(canonicalJson(kwargs))
  return { ...thinks, ...(effort === undefined ? {} : { reasoning_effort: effort }), ...given }
}
