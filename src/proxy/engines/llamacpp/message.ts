import type { LooseObject } from '../../session/sampling.ts'

/**
 * An answer's text as a message: thinking in `<think>` and, where tools were offered, calls in `<tool_call>` as Hermes and
 * Qwen templates have them written. What is no JSON object with a name stays text.
 */
export function messageOf(text: string, offersTools: boolean, callId: string): LooseObject {
  const thought = /^\s*<think>([\s\S]*?)<\/think>\s*/.exec(text)
  const said = thought === null ? text : text.slice(thought[0].length)
  const calls: LooseObject[] = []
  const content = offersTools
    ? said.replaceAll(/\s*<tool_call>([\s\S]*?)<\/tool_call>/g, (written, json: string) => {
        const call = callIn(json, callId, calls.length)
        if (call !== null) calls.push(call)
        return call === null ? written : ''
      })
    : said
  return {
    role: 'assistant',
    content: content === '' && calls.length > 0 ? null : content,
    ...(thought === null ? {} : { reasoning_content: (thought[1] ?? '').trim() }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  }
}

function callIn(json: string, callId: string, at: number): LooseObject | null {
  const call = parsed(json)
  const name = call?.['name']
  if (typeof name !== 'string') return null
  // Of OpenAI's shape, and the same for the same answer.
  const id = `call_${callId.replaceAll('-', '').slice(-20)}${String(at).padStart(4, '0')}`
  return { id, type: 'function', function: { name, arguments: JSON.stringify(call?.['arguments'] ?? {}) } }
}

function parsed(json: string): LooseObject | null {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null ? { ...value } : null
  } catch {
    return null
  }
}
