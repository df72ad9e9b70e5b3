import { InFlightSet, type Id } from '../../core/index.ts'
import { extendChain, type KnownTurns, type Turns } from '../dialects/chat/turns.ts'

/** An answer that a request continues. */
export interface ContinuedAnswer {
  readonly callId: Id
  readonly choice: number
}

/** How a request's messages stand to the answers of its session. */
export interface ConversationMatch {
  /** The answers that the request should extend; several when their content is equal. Empty: a new conversation. */
  readonly continues: readonly ContinuedAnswer[]
  /** Messages before the continued answer were changed: it is there, but not behind its own request. */
  readonly edited: boolean
  /** Index of the continued answer in the request's messages, -1 without one. */
  readonly at: number
  /** Calls whose answers the request contains: they reached the harness. */
  readonly echoed: readonly Id[]
}

/** An answer on its way into the maps. */
interface NotedAnswer {
  readonly answer: ContinuedAnswer
  readonly before: string
  readonly turn: string
}

/** So many requests are compared with the next one: those of sub-agents come in between. */
const maxKnown = 4

/**
 * What was answered in a session, by structural identity: tells whether a prompt should extend an earlier path, and
 * which answers came back. Memory grows with the number of answers, not with their size.
 */
export class Conversation {
  private readonly byChain = new Map<string, ContinuedAnswer[]>()
  private readonly byTurn = new Map<string, ContinuedAnswer[]>()
  /**
   * Answers by the ids of their tool calls, which harnesses give back: equal siblings differ in them. Null where two
   * answers of the session used one id (Kimi K2 counts `functions.<name>:<n>` anew): such an id names neither.
   */
  private readonly byToolCall = new Map<string, ContinuedAnswer | null>()
  private readonly echoed = new Set<Id>()
  /** Calls whose answers have not reached their client in full: these are few. */
  private readonly unsent = new InFlightSet<Id>()
  /** Answers that nobody has looked for yet: in many sessions nobody ever does. */
  private noted: NotedAnswer[] = []
  /** The newest requests of as many conversations, newest first. */
  private known: readonly KnownTurns[] = []

  /** Notes an answer given behind a request. `before` is the digest of the request's messages together. */
  note(answer: ContinuedAnswer, before: string, turn: string, toolCallIds: readonly string[] = []): void {
    if (!this.unsent.has(answer.callId)) this.unsent.add(answer.callId)
    for (const id of toolCallIds) this.byToolCall.set(id, this.byToolCall.has(id) ? null : answer)
    this.noted.push({ answer, before, turn })
  }

  /** The answer that made a tool call. */
  byToolCallId(id: string): ContinuedAnswer | null {
    return this.byToolCall.get(id) ?? null
  }

  /** An answer reached the client in full: of several equal ones only such can be continued. */
  noteSent(callId: Id): void {
    this.unsent.delete(callId)
  }

  /** Each call is reported as echoed once. */
  match(turns: Turns, handles: ReadonlyMap<number, ContinuedAnswer> = noHandles): ConversationMatch {
    const { messages } = turns
    if (!messages.some(isAssistant)) return newConversation
    this.sortIn()
    this.follow(turns)
    const { each, chain } = turns
    const echoed: Id[] = []
    let continues: readonly ContinuedAnswer[] = []
    let at = -1
    for (let i = messages.length - 1; i >= 0; i -= 1) {
      if (!isAssistant(messages[i])) continue
      const answers = this.named(messages[i], this.delivered(this.byChain.get(chain[i] ?? '')), handles.get(i))
      if (answers.length === 0) continue
      if (at === -1) {
        continues = answers
        at = i
      }
      // Of several equal answers nobody can say which one came back.
      const [only, second] = answers
      if (only === undefined || second !== undefined || this.echoed.has(only.callId)) continue
      this.echoed.add(only.callId)
      echoed.push(only.callId)
    }
    if (at !== -1) return { continues, edited: false, at, echoed }
    for (let i = messages.length - 1; i >= 0; i -= 1) {
      if (!isAssistant(messages[i])) continue
      const handle = handles.get(i)
      const answers = this.named(messages[i], this.delivered(this.byTurn.get(each[i] ?? '')), handle)
      if (answers.length === 0 && handle !== undefined) return { continues: [handle], edited: true, at: i, echoed }
      if (answers.length === 0) continue
      return { continues: answers.slice(-1), edited: true, at: i, echoed }
    }
    // An answer that came back in other words is known by the ids of its calls.
    for (let i = messages.length - 1; i >= 0; i -= 1) {
      const answer = isAssistant(messages[i]) ? this.calledBy(messages[i]) : null
      if (answer !== null) return { continues: [answer], edited: true, at: i, echoed }
    }
    return { continues: [], edited: false, at: -1, echoed }
  }

  private sortIn(): void {
    for (const { answer, before, turn } of this.noted) {
      push(this.byChain, extendChain(before, turn), answer)
      push(this.byTurn, turn, answer)
    }
    this.noted = []
  }

  /** Only messages that no request before began with are digested. */
  private follow(turns: Turns): void {
    const earlier = this.known.find((known) => turns.follow(known))
    const known = turns.known()
    if (known === null) return
    const others = this.known.filter((one) => one !== earlier)
    this.known = [known, ...others.slice(0, maxKnown - 1)]
  }

  /**
   * Of equal answers the one whose handle came back, else those whose tool-call ids the message gives back, or all where
   * it gives none back.
   */
  private named(
    message: unknown,
    answers: readonly ContinuedAnswer[],
    handle: ContinuedAnswer | undefined,
  ): readonly ContinuedAnswer[] {
    if (answers.length < 2) return answers
    const byHandle = answers.filter((one) => one.callId === handle?.callId && one.choice === handle.choice)
    if (byHandle.length > 0) return byHandle
    const handles = toolCallIds(message).map((id) => (typeof id === 'string' ? this.byToolCall.get(id) : undefined))
    const named = answers.filter((answer) => handles.includes(answer))
    return named.length > 0 ? named : answers
  }

  /** The one answer that made all of a message's tool calls; null where there are none or they are of several. */
  private calledBy(message: unknown): ContinuedAnswer | null {
    const [first = null, ...others] = toolCallIds(message).map((id) =>
      typeof id === 'string' ? (this.byToolCall.get(id) ?? null) : null,
    )
    return others.every((answer) => answer === first) ? first : null
  }

  /** Those that were sent, or all where none is known to be. */
  private delivered(answers: readonly ContinuedAnswer[] = none): readonly ContinuedAnswer[] {
    if (this.unsent.size === 0 || answers.length < 2) return answers
    const sent = answers.filter((answer) => !this.unsent.has(answer.callId))
    return sent.length > 0 ? sent : answers
  }
}

const none: readonly ContinuedAnswer[] = []
const noHandles: ReadonlyMap<number, ContinuedAnswer> = new Map()
const newConversation: ConversationMatch = { continues: [], edited: false, at: -1, echoed: [] }

function isAssistant(message: unknown): boolean {
  return typeof message === 'object' && message !== null && 'role' in message && message.role === 'assistant'
}

function toolCallIds(message: unknown): readonly unknown[] {
  const calls: unknown =
    typeof message === 'object' && message !== null && 'tool_calls' in message ? message.tool_calls : []
  if (!Array.isArray(calls)) return []
  return calls.map((call: unknown) => (typeof call === 'object' && call !== null && 'id' in call ? call.id : null))
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key)
  if (list === undefined) map.set(key, [value])
  else list.push(value)
}
