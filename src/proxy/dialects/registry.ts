import { completionsDialect, embeddingsDialect } from './beside/dialects.ts'
import { chatDialect } from './chat/dialect.ts'
import type { Dialect } from './contract.ts'
import { geminiDialect } from './gemini/dialect.ts'
import { messagesDialect } from './messages/dialect.ts'
import { responsesDialect } from './responses/dialect.ts'

const dialects: Readonly<Record<Dialect['name'], Dialect>> = {
  chat: chatDialect,
  responses: responsesDialect,
  messages: messagesDialect,
  gemini: geminiDialect,
  completions: completionsDialect,
  embeddings: embeddingsDialect,
}

export function dialectNamed(name: Dialect['name']): Dialect {
  return dialects[name]
}
