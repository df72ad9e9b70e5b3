import { readChatRequest } from '../chat/request.ts'
import type { Dialect } from '../contract.ts'
import { canonicalBody } from '../translate/canonical.ts'
import { readObjectBody } from '../translate/read.ts'
import { messagesError } from './errors.ts'
import { messagesForm } from './reply.ts'
import { readMessagesRequest } from './request.ts'

/** Anthropic's Messages API, version 2023-06-01. */
export const messagesDialect: Dialect = {
  name: 'messages',
  read({ bytes, headers, path, memory }) {
    const read = readMessagesRequest(readObjectBody(bytes), memory, path.endsWith('/count_tokens'))
    const { handles, thinking, thread } = read
    const chat = readChatRequest(canonicalBody(read.canonical, memory.reasoningName), headers)
    const { model } = chat
    return {
      path,
      body: bytes,
      chat,
      handles,
      reply: (callId) => messagesForm({ callId, model, thinking, thread, memory }),
    }
  },
  countBody: (tokens) => Buffer.from(JSON.stringify({ input_tokens: tokens })),
  error: messagesError,
}
