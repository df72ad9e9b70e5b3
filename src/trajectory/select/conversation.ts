import { type JsonMember, scanElements, scanMembers } from '../../core/index.ts'
import type { CallRecord, SessionLog } from '../contract/index.ts'
import type { RowView } from '../rows-contract.ts'

/** A row's conversation: chat messages as JSON texts byte for byte, the answer of the leaf call last. */
export interface Conversation {
  readonly messages: readonly string[]
  readonly tools: string | null
  /** None here: media are told apart where they are written. */
  readonly media: readonly []
}

const decoder = new TextDecoder()

/**
 * A recorded request as a chat completion body; null where it cannot be told. Given by the room that knows dialects;
 * without one a body is taken for what it is.
 */
export type RequestReader = (log: SessionLog, call: CallRecord, view: RowView) => Uint8Array | null

/** Bodies as they came: those of the chat dialect can be told so. */
export const asWritten: RequestReader = (_, { intent }) => intent.body

/** From the request of the leaf call and its answer. A body without `messages` gives the answer alone. */
export function conversationOf(
  log: SessionLog,
  call: CallRecord | null,
  choice: number | null,
  { view, readRequest }: { readonly view: RowView; readonly readRequest: RequestReader },
): Conversation {
  if (call === null) return { messages: [], tools: null, media: [] }
  const body = readRequest(log, call, view) ?? new Uint8Array()
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
    media: [],
  }
}

function topLevel(body: Uint8Array): ReadonlyMap<string, JsonMember> {
  if (body.length === 0) return new Map()
  return new Map(scanMembers(body).members.map((member) => [member.key, member]))
}
