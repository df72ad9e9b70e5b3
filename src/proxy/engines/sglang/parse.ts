import { PaddockError } from '../../../core/index.ts'
import { parseEngineJson } from '../../dialects/chat/answer.ts'
import type { LooseObject } from '../../session/sampling.ts'
import type { AskEngine, DerenderFacts, Generated, GeneratedPart } from '../token-engine.ts'

/** Names that the server was started with (`--reasoning-parser`, `--tool-call-parser`); null: none. */
export interface Parsers {
  readonly reasoning: string | null
  readonly tools: string | null
}

/**
 * Generated text as a chat completion by SGLang's parser routes: `/separate_reasoning {text, reasoning_parser}` gives
 * `{reasoning_text, text}`, `/parse_function_call {text, tools, tool_call_parser}` gives `{normal_text, calls}`
 * (`srt/entrypoints/http_server.py`). Null where a route refuses the text; a failing server rejects.
 */
export async function parsedCompletion(given: {
  readonly about: DerenderFacts
  readonly generated: Generated
  readonly ask: AskEngine
  readonly parsers: Parsers
}): Promise<LooseObject | null> {
  const choices: LooseObject[] = []
  for (const part of given.generated.parts) {
    const message = await messageOf(part, given)
    if (message === null) return null
    const called = 'tool_calls' in message
    choices.push({
      index: part.index,
      message,
      finish_reason: called && part.finishReason === 'stop' ? 'tool_calls' : part.finishReason,
      stop_reason: part.stopReason ?? null,
      logprobs: { content: part.entries },
    })
  }
  return { choices }
}

async function messageOf(
  part: GeneratedPart,
  { about, ask, parsers }: { about: DerenderFacts; ask: AskEngine; parsers: Parsers },
): Promise<LooseObject | null> {
  let content = textOf(part)
  let reasoning: string | null = null
  const post = async (path: string, body: Buffer): Promise<LooseObject | null> => {
    const reply = await ask({ path, body })
    if (reply.status >= 500) throw new PaddockError('ENGINE_ERROR', `The engine's ${path} failed (${reply.status}).`)
    return reply.status >= 400 ? null : parseEngineJson(reply.body)
  }
  if (parsers.reasoning !== null) {
    const body = { text: content, reasoning_parser: parsers.reasoning }
    const split = await post('/separate_reasoning', Buffer.from(JSON.stringify(body)))
    if (split === null) return null
    reasoning =
      typeof split['reasoning_text'] === 'string' && split['reasoning_text'] !== '' ? split['reasoning_text'] : null
    content = typeof split['text'] === 'string' ? split['text'] : ''
  }
  const tools = about.chat.text('tools')
  const offered = tools !== null && about.chat.text('tool_choice') !== '"none"'
  const thought = reasoning === null ? {} : { reasoning_content: reasoning }
  if (!offered || parsers.tools === null) return { role: 'assistant', content, ...thought }
  const head = JSON.stringify({ text: content, tool_call_parser: parsers.tools }).slice(0, -1)
  const parsed = await post('/parse_function_call', Buffer.from(`${head},"tools":${tools}}`))
  if (parsed === null) return null
  const calls = Array.isArray(parsed['calls']) ? parsed['calls'] : []
  return {
    role: 'assistant',
    content: typeof parsed['normal_text'] === 'string' ? parsed['normal_text'] : '',
    ...thought,
    ...(calls.length === 0
      ? {}
      : { tool_calls: calls.map((call: unknown, at) => callOf(call, about.callId, part.index * 100 + at)) }),
  }
}

/** The route makes no ids for calls; these are of OpenAI's shape and the same for the same answer. */
function callOf(call: unknown, callId: string, at: number): LooseObject {
  const { name, parameters } =
    typeof call === 'object' && call !== null ? ({ ...call } as LooseObject) : ({} as LooseObject)
  const id = `call_${callId.replaceAll('-', '').slice(-20)}${String(at).padStart(4, '0')}`
  return {
    id,
    type: 'function',
    function: { name: String(name), arguments: typeof parameters === 'string' ? parameters : '' },
  }
}

/** The text without the token that ended it, which stands in it because special tokens are not skipped. */
function textOf(part: GeneratedPart): string {
  const text = part.text ?? ''
  if (part.stopReason !== null && part.stopReason !== undefined) {
    const at = text.indexOf(part.stopReason)
    return at === -1 ? text : text.slice(0, at)
  }
  const last = part.entries.at(-1)?.['token']
  const ended = part.finishReason === 'stop' && typeof last === 'string' && last !== ''
  return ended && text.endsWith(last) ? text.slice(0, -last.length) : text
}
