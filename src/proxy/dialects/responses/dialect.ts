import { chatError } from '../chat/errors.ts'
import { readChatRequest } from '../chat/request.ts'
import type { Dialect } from '../contract.ts'
import { canonicalBody } from '../translate/canonical.ts'
import { readObjectBody } from '../translate/read.ts'
import { responsesForm } from './reply.ts'
import { readResponsesRequest } from './request.ts'

/** OpenAI's Responses API. */
export const responsesDialect: Dialect = {
  name: 'responses',
  read({ bytes, headers, path, memory, now }) {
    const request = readResponsesRequest(readObjectBody(bytes), memory)
    const chat = readChatRequest(canonicalBody(request.canonical, memory.reasoningName), headers)
    const { handles } = memory
    const call = { createdAt: Math.floor(now / 1000), model: chat.model, request, handles, cache: memory.responses }
    return {
      path,
      body: bytes,
      chat,
      handles: request.handles,
      reply: (callId) => responsesForm({ callId, ...call }),
    }
  },
  countBody: (tokens) => Buffer.from(JSON.stringify({ object: 'response.input_tokens', input_tokens: tokens })),
  error: chatError,
}
