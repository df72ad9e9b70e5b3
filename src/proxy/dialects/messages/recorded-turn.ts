import type { CallRecord } from '../../../trajectory/index.ts'
import type { DialectMemory } from '../contract.ts'
import { recordedMessage } from '../translate/answer-message.ts'
import { readObjectBody } from '../translate/read.ts'
import { readMessagesRequest } from './request.ts'
import type { ThreadTurn } from './threads.ts'

/** A recorded Messages call as a turn of its thread; null where it is in none, or was not answered. */
export function recordedThreadTurn(call: CallRecord, memory: DialectMemory): ThreadTurn | null {
  const answer = call.commit?.choices.find((choice) => choice.index === 0)?.message
  if (call.intent.dialect !== 'messages' || answer === undefined) return null
  const body = Buffer.from(call.intent.body)
  if (!body.includes('"thread"')) return null
  // What it continues is read by the caller, turn by turn.
  const alone: DialectMemory = {
    handles: memory.handles,
    responses: memory.responses,
    reasoningName: memory.reasoningName,
    answerOfToolCall: (id) => memory.answerOfToolCall(id),
    threads: { put: () => {}, until: () => [] },
  }
  const { thread } = readMessagesRequest(readObjectBody(body), alone, false)
  if (thread === null) return null
  return { ...thread, answer: recordedMessage(answer), handle: { callId: call.intent.id, choice: 0 } }
}
