import { parseLossless } from '../../../core/index.ts'
import type { ChoiceAnswer } from '../chat/answer.ts'
import type { CanonicalMessage } from './canonical.ts'
import { listAt, member, textAt } from './read.ts'

/** An answer as the message that the next request of its conversation would give back. */
export function answerMessage({ content, reasoning, toolCalls }: ChoiceAnswer): CanonicalMessage {
  return {
    role: 'assistant',
    text: content === '' ? null : content,
    reasoning: reasoning === '' ? null : reasoning,
    toolCalls: toolCalls.map((tool) => ({ id: tool.id ?? '', name: tool.name, argumentsText: tool.arguments })),
  }
}

/** The same of an answer as it is stored, the JSON text of a chat message. */
export function recordedMessage(text: string): CanonicalMessage {
  const message = parseLossless(text)
  const [content, reasoning] = [
    textAt(message, 'content'),
    textAt(message, 'reasoning') ?? textAt(message, 'reasoning_content'),
  ]
  return {
    role: 'assistant',
    text: content === undefined || content === '' ? null : content,
    reasoning: reasoning === undefined || reasoning === '' ? null : reasoning,
    toolCalls: listAt(message, 'tool_calls').map((call) => {
      const fn = member(call, 'function')
      return {
        id: textAt(call, 'id') ?? '',
        name: textAt(fn, 'name') ?? '',
        argumentsText: textAt(fn, 'arguments') ?? '{}',
      }
    }),
  }
}
