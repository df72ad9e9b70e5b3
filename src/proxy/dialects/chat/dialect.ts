import type { Dialect, ReplyForm } from '../contract.ts'
import { chatError, chatErrorEvent, engineRefusal } from './errors.ts'
import { readWholeReply, ReplyStream } from './reply.ts'
import { type ChatRequest, readChatRequest } from './request.ts'
import { completionBody, completionEvents } from './synthesise.ts'
import { ToolDeltas } from './tool-deltas.ts'

const keepAlive = Buffer.from(': keep-alive\n\n')
const noHandles = new Map<number, never>()

/** OpenAI's chat completions: the canonical form itself, passed on as the client wrote it. */
export const chatDialect: Dialect = {
  name: 'chat',
  read({ bytes, headers, path }) {
    const chat = readChatRequest(bytes, headers)
    return { path, body: bytes, chat, handles: noHandles, reply: (callId) => chatForm(chat, callId) }
  },
  error: chatError,
}

function chatForm(request: ChatRequest, callId: string): ReplyForm {
  const view = { streamed: request.streamed, wantsUsage: request.wantsUsage, wantsLogprobs: request.wantsLogprobs }
  // Clients of the AI SDK family want id, type and name on every delta of a tool call. The form outlives the request.
  const wantsNames = /\bai-sdk\b|opencode/i.test(request.lineage.userAgent ?? '')
  return {
    reader: (answer) => new ReplyStream(answer, view, new ToolDeltas(wantsNames, callIds(callId))),
    whole: (body, answer) => readWholeReply(body, answer, view),
    body: completionBody,
    events: completionEvents,
    keepAlive,
    requestIdHeader: 'x-request-id',
    error: (error) => chatError(error, callId),
    errorEvent: chatErrorEvent,
    refusal: (status, body, retryAfter) => engineRefusal(status, body, retryAfter, callId),
  }
}

/** Ids for tool calls that an engine left without one. */
export function callIds(callId: string): () => string {
  let minted = 0
  return () => `call_${callId.replaceAll('-', '').slice(12)}${(minted += 1)}`
}
