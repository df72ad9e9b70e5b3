import { readChatRequest } from '../chat/request.ts'
import type { Dialect } from '../contract.ts'
import { canonicalBody } from '../translate/canonical.ts'
import { member, readObjectBody, shape } from '../translate/read.ts'
import { geminiError } from './errors.ts'
import { geminiForm } from './reply.ts'
import { readGeminiRequest } from './request.ts'

/** Google's Gemini API, `generateContent` of v1beta. Model and method are in the path. */
export const geminiDialect: Dialect = {
  name: 'gemini',
  read({ bytes, headers, path, memory }) {
    const [, name = '', method] = /\/models\/(.+):(\w+)$/.exec(path) ?? []
    const model = decoded(name)
    const body = readObjectBody(bytes)
    const inner = member(body, 'generateContentRequest')
    const asked = method === 'countTokens' && inner?.kind === 'object' ? inner : body
    const { canonical, handles, thoughts } = readGeminiRequest(
      asked,
      { model, streamed: method === 'streamGenerateContent' },
      memory,
    )
    const chat = readChatRequest(canonicalBody(canonical, memory.reasoningName), headers)
    return {
      path,
      body: bytes,
      chat,
      handles,
      reply: (callId) => geminiForm({ callId, model, thoughts, handles: memory.handles }),
    }
  },
  countBody: (tokens) => Buffer.from(JSON.stringify({ totalTokens: tokens })),
  error: geminiError,
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    throw shape('model', 'a name in percent encoding')
  }
}
