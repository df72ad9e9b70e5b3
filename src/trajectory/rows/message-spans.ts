import { type Event, scanElements, scanMembers } from '../../core/index.ts'
import type { CallRecord, SessionLog } from '../contract/index.ts'
import type { MessageSpan, Row, RowView } from '../rows-contract.ts'
import { findPieces } from './find-pieces.ts'
import type { TokenTexts } from './token-texts.ts'

/** A recorded request as a chat completion body; null where it cannot be told. */
type ReadRequest = (log: SessionLog, call: CallRecord, view: RowView) => Uint8Array | null

/** What the spans of a session's rows are read from. */
export interface SpanSource {
  /** With all its bodies. */
  readonly log: SessionLog
  readonly readRequest: ReadRequest
  readonly view: RowView
  readonly texts: TokenTexts
  /** How tool calls went, by the id that the model's answer gave them. */
  readonly statuses: ReadonlyMap<string, ToolStatus>
}

type ToolStatus = NonNullable<MessageSpan['status']>
type Role = NonNullable<MessageSpan['role']>

const roles: readonly string[] = ['system', 'developer', 'user', 'assistant', 'tool'] satisfies Role[]

/** A message as far as its words are concerned. */
interface Message {
  readonly role: Role | null
  readonly words: readonly string[]
  readonly toolCallId: string | null
  /** A template writes more of it than its words: tool calls, thoughts, pictures. */
  readonly more: boolean
}

/** Tokens `[start, end)` that the engine made of `messages`. */
interface Stretch {
  readonly start: number
  readonly end: number
  readonly messages: readonly Message[]
}

/**
 * Whose the tokens of a session's rows are. The words of each message are looked for in the texts of the tokens that the engine
 * itself made of the request: no template of ours. Where they stand at one place only they are `content`, and what lies between is
 * the template's `scaffold`; all else is `unknown`.
 */
export class MessageSpans {
  readonly #source: SpanSource
  readonly #calls: ReadonlyMap<string, CallRecord>
  readonly #lengths: ReadonlyMap<string, number>
  readonly #tools = new Map<string, string>()

  constructor(source: SpanSource) {
    this.#source = source
    this.#calls = new Map(source.log.calls.map((call) => [call.intent.id, call]))
    this.#lengths = new Map(source.log.segments.map(({ id, tokens }) => [id, tokens.length]))
  }

  /** Without gaps from the first token to the last. */
  of(row: Pick<Row, 'tokens' | 'segments'>): readonly MessageSpan[] {
    const spans: MessageSpan[] = []
    let from = 0
    let told = 0
    for (const segment of row.segments) {
      const { segmentId, callId, choice, start, end } = segment
      const isAnswer = callId !== null && choice !== null && end - start === this.#lengths.get(segmentId)
      if (!isAnswer) continue
      const asked = this.#messages(callId)
      const stretch = { start: from, end: start, messages: asked === null ? null : asked.slice(told) }
      const isLess = asked !== null && asked.length < told
      if (start > from) spans.push(...this.#spansOf(row.tokens, isLess ? { ...stretch, messages: null } : stretch))
      if (end > start) spans.push(span(start, end, { role: 'assistant', part: 'answer' }))
      from = end
      told = (asked?.length ?? told) + 1
    }
    if (from < row.tokens.length) spans.push(span(from, row.tokens.length, {}))
    return spans
  }

  #spansOf(tokens: Int32Array, { start, end, messages }: Stretch | { start: number; end: number; messages: null }) {
    const whole = [span(start, end, { role: messages === null ? null : commonRole(messages) })]
    if (messages === null) return whole
    const wanted = messages.flatMap(({ words }, message) => words.map((text) => ({ text, message })))
    const found = findPieces(tokens.subarray(start, end), this.#source.texts, wanted)
    if (found === null) return whole
    const between = messages.some(({ more }) => more) ? 'unknown' : 'scaffold'
    const spans: MessageSpan[] = []
    let at = 0
    for (const piece of found) {
      const from = Math.max(at, piece.start)
      if (from > at) spans.push(span(start + at, start + from, { part: between }))
      const place = { start: start + from, end: start + piece.end }
      if (piece.end > from) {
        spans.push(
          piece.isCertain
            ? { ...place, ...this.#ofMessage(messages[piece.message]) }
            : span(place.start, place.end, { role: commonRole(messages) }),
        )
      }
      at = Math.max(at, piece.end)
    }
    if (at < end - start) spans.push(span(start + at, end, { part: between }))
    return spans
  }

  #ofMessage(message: Message | undefined): Omit<MessageSpan, 'start' | 'end'> {
    const toolCallId = message?.toolCallId ?? null
    const tool = toolCallId === null ? null : (this.#tools.get(toolCallId) ?? null)
    const status = toolCallId === null ? null : (this.#source.statuses.get(toolCallId) ?? null)
    return { role: message?.role ?? null, part: 'content', toolCallId, tool, status }
  }

  #messages(callId: string): readonly Message[] | null {
    const { log, view, readRequest } = this.#source
    const call = this.#calls.get(callId)
    const body = call === undefined ? null : readRequest(log, call, view)
    if (body === null || body.length === 0) return null
    const member = scanMembers(body).members.find(({ key }) => key === 'messages')
    if (member === undefined) return null
    return scanElements(body, member.valueStart).map(({ start, end }) =>
      this.#read(JSON.parse(Buffer.from(body.subarray(start, end)).toString())),
    )
  }

  #read(value: unknown): Message {
    const message = objectOf(value)
    const { role, content, tool_call_id: id } = message
    const calls = Array.isArray(message['tool_calls']) ? message['tool_calls'].map(objectOf) : []
    for (const call of calls) {
      const { name } = objectOf(call['function'])
      if (typeof call['id'] === 'string' && typeof name === 'string') this.#tools.set(call['id'], name)
    }
    const parts = Array.isArray(content)
      ? content.map(objectOf)
      : typeof content === 'string'
        ? [{ text: content }]
        : []
    const words = parts.flatMap(({ text }) => (typeof text === 'string' && text.trim() !== '' ? [text] : []))
    const thought = message['reasoning_content'] ?? message['reasoning']
    return {
      role: isRole(role) ? role : null,
      words,
      toolCallId: typeof id === 'string' ? id : null,
      more: calls.length > 0 || (thought ?? '') !== '' || parts.some(({ text }) => typeof text !== 'string'),
    }
  }
}

/**
 * 1 at tokens that a trainer may learn to foresee: what tools said behind the first answer, less scaffold and less what tools said
 * of failing. Shape [T].
 */
export function observationMask(length: number, spans: readonly MessageSpan[]): Uint8Array {
  const mask = new Uint8Array(length)
  const first = spans.find(({ part }) => part === 'answer')?.end ?? length
  for (const { start, end, role, part, status } of spans) {
    if (start >= first && role === 'tool' && part === 'content' && (status ?? 'ok') === 'ok') mask.fill(1, start, end)
  }
  return mask
}

/** How tool calls of a rollout went, by the id that the model's answer gave them. */
export function toolStatuses(events: readonly Event[]): ReadonlyMap<string, ToolStatus> {
  return new Map(events.flatMap((event) => (event.kind === 'tool_result' ? [[event.toolCallId, event.status]] : [])))
}

function span(start: number, end: number, about: Partial<Omit<MessageSpan, 'start' | 'end'>>): MessageSpan {
  return { start, end, role: null, part: 'unknown', toolCallId: null, tool: null, status: null, ...about }
}

function commonRole(messages: readonly Message[]): Role | null {
  const [first] = messages
  return first !== undefined && messages.every(({ role }) => role === first.role) ? first.role : null
}

function isRole(value: unknown): value is Role {
  return typeof value === 'string' && roles.includes(value)
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
