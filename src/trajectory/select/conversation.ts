import { type JsonMember, scanElements, scanMembers } from '../../core/index.ts'
import type { CallRecord } from '../contract.ts'

/** A row's conversation: chat messages as JSON texts byte for byte, the answer of the leaf call last. */
export interface Conversation {
  readonly messages: readonly string[]
  readonly tools: string | null
}

const decoder = new TextDecoder()

/** From the request body of the leaf call and its answer. A body without `messages` gives the answer alone. */
export function conversationOf(call: CallRecord | null, choice: number | null): Conversation {
  if (call === null) return { messages: [], tools: null }
  const { body } = call.intent
  const answer = call.commit?.choices.find((candidate) => candidate.index === choice)?.message
  const members = topLevel(body)
  const messages = members.get('messages')
  const tools = members.get('tools')
  const asked =
    messages === undefined
      ? []
      : scanElements(body, messages.valueStart).map(({ start, end }) => decoder.decode(body.subarray(start, end)))
  return {
    messages: answer === undefined ? asked : [...asked, answer],
    tools: tools === undefined ? null : decoder.decode(body.subarray(tools.valueStart, tools.valueEnd)),
  }
}

function topLevel(body: Uint8Array): ReadonlyMap<string, JsonMember> {
  if (body.length === 0) return new Map()
  return new Map(scanMembers(body).members.map((member) => [member.key, member]))
}
