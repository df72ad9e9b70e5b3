import { answerParser, parseWhole } from '../../parsers/index.ts'
import { uuidHex } from '../begin.ts'
import type { FinishReason } from '../../generation/choice.ts'
import type { AnswerPart, ToolChoice } from '../../parsers/index.ts'
import type { Profile } from '../../profiles.ts'

/** What decides how sampled text becomes a message. */
export interface MessageSetting {
  readonly toolChoice: ToolChoice
  readonly thinkingOpen: boolean
  readonly includeReasoning: boolean
  readonly parallelToolCalls: boolean
  readonly role: string
}

/** The finish reason a chat client sees: `tool_calls` for calls it did not name itself. */
export function chatFinish(reason: FinishReason, called: boolean, choice: ToolChoice): string {
  return called && reason === 'stop' && choice.kind !== 'named' ? 'tool_calls' : reason
}

/** A whole message in the field order of vLLM's ChatMessage; `tool_calls` is left out when empty. */
export function chatMessage(text: string, profile: Profile, setting: MessageSetting): Record<string, unknown> {
  const answer = parseWhole(answerParser(profile, setting.toolChoice, setting.thinkingOpen), text)
  const kept = setting.parallelToolCalls ? answer.calls : answer.calls.slice(0, 1)
  const calls = kept.map((call) => ({
    id: callId(),
    type: 'function',
    function: { name: call.name, arguments: call.arguments },
  }))
  return {
    role: setting.role,
    content: answer.content,
    refusal: null,
    annotations: null,
    audio: null,
    function_call: null,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    reasoning: setting.includeReasoning ? answer.reasoning : null,
  }
}

/** vLLM's id of a tool call (`make_tool_call_id`). */
export function callId(): string {
  return `chatcmpl-tool-${uuidHex()}`
}

/**
 * The `delta` of a chunk. A call is announced with id, type and name; its later parts carry the index only, as vLLM
 * streams them (issue 42696). Undefined when the parts hold nothing to show.
 */
export function chatDelta(parts: readonly AnswerPart[], setting: MessageSetting): Record<string, unknown> | undefined {
  let reasoning = ''
  let content = ''
  const calls = new Map<
    number,
    { id?: string; type?: string; index: number; function: { name?: string; arguments?: string } }
  >()
  for (const part of parts) {
    if (part.kind === 'reasoning') reasoning += part.text
    else if (part.kind === 'content') content += part.text
    else if (!setting.parallelToolCalls && part.index > 0) continue
    else if (part.kind === 'call')
      calls.set(part.index, { id: callId(), type: 'function', index: part.index, function: { name: part.name } })
    else {
      const call = calls.get(part.index) ?? { index: part.index, function: {} }
      call.function.arguments = (call.function.arguments ?? '') + part.text
      calls.set(part.index, call)
    }
  }
  const delta = {
    ...(reasoning === '' || !setting.includeReasoning ? {} : { reasoning }),
    ...(content === '' ? {} : { content }),
    ...(calls.size === 0 ? {} : { tool_calls: [...calls.values()] }),
  }
  return Object.keys(delta).length === 0 ? undefined : delta
}
