import type { ChatText } from './token-engine.ts'

/** Tool choice and response format become grammars inside the chat route; nobody outside makes the same ones. */
export function hasGrammar(chat: ChatText): boolean {
  const choice: unknown = JSON.parse(chat.text('tool_choice') ?? 'null')
  const format = formatOf(JSON.parse(chat.text('response_format') ?? 'null'))
  return (choice !== null && choice !== 'auto' && choice !== 'none') || format !== 'text'
}

function formatOf(format: unknown): unknown {
  return (typeof format === 'object' && format !== null && Reflect.get(format, 'type')) || 'text'
}
