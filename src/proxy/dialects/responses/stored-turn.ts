import type { CallRecord } from '../../../trajectory/index.ts'
import type { LooseObject } from '../../session/sampling.ts'
import type { DialectMemory } from '../contract.ts'
import { recordedMessage } from '../translate/answer-message.ts'
import { readObjectBody } from '../translate/read.ts'
import { responseId } from './output.ts'
import { readResponsesRequest } from './request.ts'
import type { CachedResponse, StoredAnswer } from './response-cache.ts'

/**
 * A recorded Responses call as the response cache held it while its session lived, the response object left empty; null where it
 * was not answered.
 */
export function storedTurn(call: CallRecord, memory: DialectMemory): CachedResponse | null {
  return readTurn(call, memory)?.turn ?? null
}

/** The same for a session that lives on: whole, with its id; null also where the client asked not to store it. */
export function shelvedTurn(
  call: CallRecord,
  memory: DialectMemory,
): { readonly id: string; readonly turn: CachedResponse } | null {
  const read = readTurn(call, memory)
  if (read === null || !read.store) return null
  const response = responseIn(Buffer.from(call.commit?.reply ?? []).toString(), call.intent.streamed)
  if (response === null) return null
  return { id: responseId({ callId: call.intent.id }), turn: { ...read.turn, response } }
}

function readTurn(
  call: CallRecord,
  memory: DialectMemory,
): { readonly turn: CachedResponse; readonly store: boolean } | null {
  const answer = call.commit?.choices.find((choice) => choice.index === 0)?.message
  if (call.intent.dialect !== 'responses' || answer === undefined) return null
  // What it continues is read by the caller, turn by turn.
  const alone: DialectMemory = {
    handles: memory.handles,
    reasoningName: memory.reasoningName,
    answerOfToolCall: (id) => memory.answerOfToolCall(id),
    threads: memory.threads,
    responses: { put: () => {}, until: () => [], answered: (id) => memory.responses.answered(id) },
  }
  const { previous, input, inputText, store } = readResponsesRequest(
    readObjectBody(Buffer.from(call.intent.body)),
    alone,
  )
  const turn = {
    previous,
    input,
    inputText,
    answer: recordedMessage(answer),
    handle: { callId: call.intent.id, choice: 0 },
    response: {},
  }
  return { turn, store }
}

/** The answer of a recorded Responses call, whose request need not be read for it; null where it was not answered. */
export function storedAnswer(call: CallRecord): StoredAnswer | null {
  const answer = call.commit?.choices.find((choice) => choice.index === 0)?.message
  if (call.intent.dialect !== 'responses' || answer === undefined) return null
  return { answer: recordedMessage(answer), handle: { callId: call.intent.id, choice: 0 } }
}

/** The response object of a reply: all of it, or what the stream's last event with one holds. */
function responseIn(reply: string, streamed: boolean): LooseObject | null {
  if (!streamed) return objectOf(reply)
  for (const line of reply.split('\n').toReversed()) {
    const event = /^data: \{"type":"response\.(completed|incomplete)"/.test(line) ? objectOf(line.slice(6)) : null
    const response = event?.['response']
    if (typeof response === 'object' && response !== null) return Object.fromEntries(Object.entries(response))
  }
  return null
}

function objectOf(text: string): LooseObject | null {
  const value: unknown = JSON.parse(text)
  return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : null
}
