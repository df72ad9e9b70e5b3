import { InFlightSet, type Id } from '../../core/index.ts'
import { extendChain, type KnownTurns, turnDigest, type Turns } from '../dialects/chat/turns.ts'

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
  /** Where an answer stood behind the continued one, and the harness sent other words. Null: nowhere. */
  readonly replaced: { readonly answer: ContinuedAnswer; readonly at: number } | null
}

/** What a request is compared with. */
interface NotedAnswer {
  readonly answer: ContinuedAnswer
  readonly before: string
  readonly turn: string
  /** Blanks at the edges of its text. */
  readonly edges: Edges
}

/** The blanks that a text begins and ends with; of a text of nothing else all are in `lead`. */
interface Edges {
  readonly lead: string
  readonly trail: string
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
  private readonly byToolCall = new Map<string, NotedAnswer | null>()
  private readonly echoed = new Set<Id>()
  /** Calls whose answers have not reached their client in full: these are few. */
  private readonly unsent = new InFlightSet<Id>()
  private readonly noted: NotedAnswer[] = []
  /** How many of them are in the maps: in many sessions nobody ever looks for one. */
  private sorted = 0
  /** The newest requests of as many conversations, newest first. */
  private known: readonly KnownTurns[] = []

  /** Notes an answer given behind a request. `before` is the digest of the request's messages together. */
  note(
    answer: ContinuedAnswer,
    before: string,
    { turn, content, toolCallIds }: { turn: string; content: string | null; toolCallIds: readonly string[] },
  ): void {
    if (!this.unsent.has(answer.callId)) this.unsent.add(answer.callId)
    const noted = { answer, before, turn, edges: edgesOf(content ?? '') }
    for (const id of toolCallIds) this.byToolCall.set(id, this.byToolCall.has(id) ? null : noted)
    this.noted.push(noted)
  }

  /** The answer that made a tool call. */
  byToolCallId(id: string): ContinuedAnswer | null {
    return this.byToolCall.get(id)?.answer ?? null
  }

  /** An answer reached the client in full: of several equal ones only such can be continued. */
  noteSent(callId: Id): void {
    this.unsent.delete(callId)
  }

  /**
   * Makes the digests of a request's messages. An answer that came back named, by its handle or the ids of its calls, and
   * differs in the blanks at its edges alone is the answer that was given.
   */
  read(turns: Turns, handles: ReadonlyMap<number, ContinuedAnswer> = noHandles): void {
    this.sortIn()
    const earlier = this.known.find((known) => turns.follow(known))
    turns.digestBy((message, index, { digest, before }) => {
      if (!isAssistant(message) || this.byChain.has(extendChain(before, digest))) return digest
      const noted = this.noteOf(handles.get(index)) ?? this.calledBy(message)
      return noted !== null && turnDigest(withEdges(message, noted.edges)) === noted.turn ? noted.turn : digest
    })
    const known = turns.known()
    if (known === null) return
    const others = this.known.filter((one) => one !== earlier)
    this.known = [known, ...others.slice(0, maxKnown - 1)]
  }

  /** Each call is reported as echoed once. */
  match(turns: Turns, handles: ReadonlyMap<number, ContinuedAnswer> = noHandles): ConversationMatch {
    const { messages } = turns
    if (!messages.some(isAssistant)) return newConversation
    this.read(turns, handles)
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
    const replaced = this.replacedBehind(turns, at)
    if (at !== -1) return { continues, edited: false, at, echoed, replaced }
    for (let i = messages.length - 1; i >= 0; i -= 1) {
      if (!isAssistant(messages[i])) continue
      const handle = handles.get(i)
      const answers = this.named(messages[i], this.delivered(this.byTurn.get(each[i] ?? '')), handle)
      if (answers.length === 0 && handle !== undefined)
        return { continues: [handle], edited: true, at: i, echoed, replaced }
      if (answers.length === 0) continue
      return { continues: answers.slice(-1), edited: true, at: i, echoed, replaced }
    }
    // An answer that came back in other words is known by the ids of its calls.
    for (let i = messages.length - 1; i >= 0; i -= 1) {
      const noted = isAssistant(messages[i]) ? this.calledBy(messages[i]) : null
      if (noted !== null) return { continues: [noted.answer], edited: true, at: i, echoed, replaced }
    }
    if (replaced !== null) return { continues: [replaced.answer], edited: true, at: replaced.at, echoed, replaced }
    return { continues: [], edited: false, at: -1, echoed, replaced }
  }

  /** The answer that stood where the first assistant message behind `at` stands, if its client had it. */
  private replacedBehind({ messages, chain }: Turns, at: number): ConversationMatch['replaced'] {
    const first = messages.findIndex((message, index) => index > at && isAssistant(message))
    const before = chain[first - 1]
    if (before === undefined) return null
    const noted = this.noted.findLast((one) => one.before === before && !this.unsent.has(one.answer.callId))
    return noted === undefined ? null : { answer: noted.answer, at: first }
  }

  private sortIn(): void {
    for (; this.sorted < this.noted.length; this.sorted += 1) {
      const one = this.noted[this.sorted]
      if (one === undefined) continue
      push(this.byChain, extendChain(one.before, one.turn), one.answer)
      push(this.byTurn, one.turn, one.answer)
    }
  }

  private noteOf(handle: ContinuedAnswer | undefined): NotedAnswer | null {
    if (handle === undefined) return null
    const { callId, choice } = handle
    return this.noted.findLast(({ answer }) => answer.callId === callId && answer.choice === choice) ?? null
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
    const handles = toolCallIds(message).map((id) => (typeof id === 'string' ? this.byToolCallId(id) : null))
    const named = answers.filter((answer) => handles.includes(answer))
    return named.length > 0 ? named : answers
  }

  /** The one answer that made all of a message's tool calls; null where there are none or they are of several. */
  private calledBy(message: unknown): NotedAnswer | null {
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
const newConversation: ConversationMatch = { continues: [], edited: false, at: -1, echoed: [], replaced: null }

const noEdges: Edges = { lead: '', trail: '' }

function edgesOf(text: string): Edges {
  const words = text.trim()
  if (words.length === text.length) return noEdges
  if (words === '') return { lead: text, trail: '' }
  const lead = text.length - text.trimStart().length
  return { lead: text.slice(0, lead), trail: text.slice(lead + words.length) }
}

/** The message with other blanks around its text. */
function withEdges(message: unknown, { lead, trail }: Edges): unknown {
  if (typeof message !== 'object' || message === null) return message
  const content: unknown = 'content' in message ? message.content : null
  const parts: readonly unknown[] = Array.isArray(content) ? content : [content ?? '']
  const texts = parts.map(textOf)
  if (texts.includes(null)) return message
  return { ...message, content: `${lead}${texts.join('').trim()}${trail}` }
}

function textOf(part: unknown): string | null {
  if (typeof part === 'string') return part
  const isText = typeof part === 'object' && part !== null && 'type' in part && part.type === 'text' && 'text' in part
  return isText && typeof part.text === 'string' ? part.text : null
}

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
