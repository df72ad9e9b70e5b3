import { editObject, type Id, parseLossless } from '../../core/index.ts'
import type { CallIntent, CallRecord, SessionLog } from '../../trajectory/index.ts'
import { injectedAgain } from '../injection/injector.ts'
import type { ContinuedAnswer } from '../session/conversation.ts'
import { readStoredHandle } from '../session/echo-handles.ts'
import { hasMedia } from '../tokens/chat-body.ts'
import type { DialectMemory } from './contract.ts'
import { dialectNamed } from './registry.ts'
import { recordedThreadTurn } from './messages/recorded-turn.ts'
import { messageId, turnsUntil } from './messages/threads.ts'
import { responseId } from './responses/output.ts'
import { storedAnswer, storedTurn } from './responses/stored-turn.ts'
import type { CachedResponse, StoredAnswer } from './responses/response-cache.ts'
import { listAt, textAt } from './translate/read.ts'

const untold: StoredAnswer = {
  answer: { role: 'assistant', text: null, reasoning: null, toolCalls: [] },
  handle: null,
}

/** Knows no session: handles are foreign, and what an earlier response holds is not repeated. */
const nobody: DialectMemory = {
  handles: { mint: () => '', read: () => null },
  responses: { put: () => {}, until: () => [], answered: () => untold },
  threads: { put: () => {}, until: () => [] },
  answerOfToolCall: () => null,
  reasoningName: 'reasoning',
}

type ReadIntent = Pick<CallIntent, 'dialect' | 'path' | 'body' | 'startedAt'>

/**
 * The messages of a recorded request in the canonical chat form, whatever dialect it was asked in; none where the body
 * is not readable. Of a request that continues a stored response or a thread only what it added.
 */
export function requestMessages(intent: ReadIntent): readonly unknown[] {
  try {
    return read(intent, nobody).messages
  } catch {
    return []
  }
}

/**
 * A recorded request as the chat completion body that it came to, whatever dialect it was asked in: a stored response
 * that it continues is there with all that stood before it, and thinking that travelled in opaque strings is text
 * again. A chat request is given byte for byte. With `as_sampled` what the session's policy put into it is there too. Null where the
 * body is not readable, or holds no conversation.
 */
export function chatRequestOf(
  log: Pick<SessionLog, 'session' | 'calls'>,
  call: CallRecord,
  view: 'as_sampled' | 'clean' = 'clean',
): Uint8Array | null {
  const body = cleanRequestOf(log, call)
  if (body === null || view === 'clean') return body
  const put = injectedAgain(log, call, (one) => {
    const bytes = cleanRequestOf(log, one)
    return bytes === null ? null : { bytes, messages: messagesIn(bytes) }
  })
  return put === null ? body : editObject(body, { set: { messages: put.text } })
}

function cleanRequestOf(log: Pick<SessionLog, 'calls'>, { intent }: CallRecord): Uint8Array | null {
  if (intent.dialect === 'chat') return intent.body
  if (dialectNamed(intent.dialect).beside !== undefined) return null
  try {
    return read(intent, memoryOf(log)).bytes
  } catch {
    return null
  }
}

function messagesIn(bytes: Uint8Array): readonly unknown[] {
  try {
    const body: unknown = JSON.parse(Buffer.from(bytes).toString())
    const messages: unknown = typeof body === 'object' && body !== null && 'messages' in body ? body.messages : null
    return Array.isArray(messages) ? messages : []
  } catch {
    return []
  }
}

/**
 * Ids alone do not say what the model saw of a recorded request: it holds images, sound or files, or cannot be read. Of a log with all
 * its bodies.
 */
export function showsMedia(log: Pick<SessionLog, 'session' | 'calls'>, call: CallRecord): boolean {
  const body = chatRequestOf(log, call, 'as_sampled')
  return body === null || hasMedia(messagesIn(body))
}

function read(intent: ReadIntent, memory: DialectMemory) {
  const input = { bytes: Buffer.from(intent.body), headers: {}, path: intent.path, now: intent.startedAt, memory }
  return dialectNamed(intent.dialect).read(input).chat
}

/** Of the logs that are read now: each of their calls asks. */
const memories = new WeakMap<SessionLog['calls'], DialectMemory>()

/** What the session remembered when it was live, as far as its log tells. */
function memoryOf({ calls }: Pick<SessionLog, 'calls'>): DialectMemory {
  const known = memories.get(calls)
  if (known !== undefined) return known
  const byId = new Map<Id, CallRecord>(calls.map((call) => [call.intent.id, call]))
  const byMessage = new Map(calls.map((call) => [messageId(call.intent.id), call]))
  const byResponse = new Map(calls.map((call) => [responseId({ callId: call.intent.id }), call]))
  let byToolCall: ReadonlyMap<string, ContinuedAnswer | null> | null = null
  const memory: DialectMemory = {
    ...nobody,
    answerOfToolCall: (id) => (byToolCall ??= answersByToolCall(calls)).get(id) ?? null,
    handles: {
      mint: () => '',
      read: (handle) => {
        const echoed = readStoredHandle(handle)
        return echoed !== null && byId.has(echoed.callId) ? echoed : null
      },
    },
    threads: {
      put: () => {},
      until: (id) =>
        turnsUntil(id, (at) => {
          const call = byMessage.get(at)
          return call === undefined ? null : recordedThreadTurn(call, memory)
        }),
    },
    responses: {
      put: () => {},
      answered: (id) => {
        const call = byResponse.get(id)
        return call === undefined ? null : storedAnswer(call)
      },
      until: (id) => {
        const found: CachedResponse[] = []
        for (let at: string | null = id; at !== null;) {
          const call = byResponse.get(at)
          const turn: CachedResponse | null = call === undefined ? null : storedTurn(call, memory)
          if (turn === null) return null
          found.unshift(turn)
          at = turn.previous
        }
        return found
      },
    },
  }
  memories.set(calls, memory)
  return memory
}

/** By the ids of tool calls; null for one that was given twice, which names no answer. */
function answersByToolCall(calls: SessionLog['calls']): ReadonlyMap<string, ContinuedAnswer | null> {
  const answers = new Map<string, ContinuedAnswer | null>()
  for (const { intent, commit } of calls) {
    for (const { index, message } of commit?.choices ?? []) {
      if (!message.includes('"tool_calls"')) continue
      for (const call of listAt(parseLossless(message), 'tool_calls')) {
        const id = textAt(call, 'id')
        if (id !== undefined) answers.set(id, answers.has(id) ? null : { callId: intent.id, choice: index })
      }
    }
  }
  return answers
}
