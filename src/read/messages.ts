import { z } from 'zod'

/** A message of a request or an answer, as a reader wants it. Foreign fields are left alone. */
export interface ReadMessage {
  readonly role: string
  readonly text: string
  readonly reasoning: string | null
  readonly toolCalls: readonly { readonly id: string; readonly name: string; readonly argumentsText: string }[]
  readonly toolCallId: string | null
}

const part = z.looseObject({ type: z.string().optional(), text: z.string().optional() })
const toolCall = z.looseObject({
  id: z.string().default(''),
  function: z.looseObject({ name: z.string().default(''), arguments: z.string().default('') }).optional(),
})
const message = z.looseObject({
  role: z.string().default('assistant'),
  content: z.union([z.string(), z.array(z.unknown())]).nullish(),
  reasoning: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  tool_calls: z.array(toolCall).nullish(),
  tool_call_id: z.string().nullish(),
})
/** Reads one message; what is not a message comes out as its JSON text. */
export function readMessage(value: unknown): ReadMessage {
  const parsed = message.safeParse(value)
  if (!parsed.success) {
    return { role: 'unknown', text: JSON.stringify(value), reasoning: null, toolCalls: [], toolCallId: null }
  }
  const { role, content, reasoning, reasoning_content, tool_calls, tool_call_id } = parsed.data
  return {
    role,
    text: typeof content === 'string' ? content : (content ?? []).map(partText).join(''),
    reasoning: reasoning ?? reasoning_content ?? null,
    toolCalls: (tool_calls ?? []).map((call) => ({
      id: call.id,
      name: call.function?.name ?? '',
      argumentsText: call.function?.arguments ?? '',
    })),
    toolCallId: tool_call_id ?? null,
  }
}

function partText(value: unknown): string {
  const parsed = part.safeParse(value)
  if (!parsed.success) return ''
  return parsed.data.text ?? `[${parsed.data.type ?? 'part'}]`
}

/** How many messages at the start of both lists are the same JSON. */
export function commonPrefix(a: readonly unknown[], b: readonly unknown[]): number {
  let length = 0
  while (length < a.length && length < b.length && JSON.stringify(a[length]) === JSON.stringify(b[length])) length += 1
  return length
}
