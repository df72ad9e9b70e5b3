import type { ChatBody } from './chat-body.ts'
import { closingOf, type Closing, commonStart } from './splice-ids.ts'

/** Renders a chat request to ids; null where the engine refuses. */
export type Render = (chat: Buffer) => Promise<Int32Array | null>

/** What stands behind an answer so that a render may end with it, for engines that always open a turn. */
const dummyTurn = message('user', 'x')

/** Renders lists of messages with everything else of one request. */
export class TurnRenders {
  private readonly chat: ChatBody
  private readonly render: Render
  /** The engine can leave a new turn unopened. */
  readonly endsTurns: boolean

  constructor(chat: ChatBody, render: Render, endsTurns: boolean) {
    this.chat = chat
    this.render = render
    this.endsTurns = endsTurns
  }

  /** A new turn of the assistant is opened behind the messages. */
  opened(messages: readonly Buffer[]): Promise<Int32Array | null> {
    return this.render(this.chat.over(messages, { open: true }))
  }

  /** The last message is an answer and ends; behind it stands what {@link Closing.last} says. */
  ended(messages: readonly Buffer[]): Promise<Int32Array | null> {
    if (this.endsTurns) return this.render(this.chat.over(messages, { open: false }))
    return this.opened([...messages, dummyTurn])
  }

  /** Requests with equal keys have equal closings. A dummy turn opens the answer behind it as the whole request says. */
  get key(): string {
    if (!this.endsTurns) return this.chat.renderDigest
    return `${this.chat.text('model') ?? ''}\u0000${this.chat.text('chat_template_kwargs') ?? ''}`
  }
}

type LearnedClosing = Closing & { readonly terminators: Set<number> }

/**
 * How templates end an assistant turn, learned from a few small renders that differ in one letter. Shared by the
 * sessions of an engine.
 */
export class Closings {
  private readonly known = new Map<string, Promise<LearnedClosing>>()
  private readonly calls = new Map<string, Promise<number>>()

  /** Another template renders from now on. */
  forget(): void {
    this.known.clear()
    this.calls.clear()
  }

  of(renders: TurnRenders): Promise<LearnedClosing> {
    const found = this.known.get(renders.key)
    if (found !== undefined) return found
    const learned = learn(renders)
    this.known.set(renders.key, learned)
    learned.catch(() => this.known.delete(renders.key))
    return learned
  }

  /** Ids between the last argument of an answer's last tool call and its terminator; -1 where they cannot be told. */
  behindCall(renders: TurnRenders): Promise<number> {
    const found = this.calls.get(renders.key)
    if (found !== undefined) return found
    const learned = this.of(renders).then((closing) => learnBehindCall(renders, closing))
    this.calls.set(renders.key, learned)
    learned.catch(() => this.calls.delete(renders.key))
    return learned
  }
}

async function learnBehindCall(renders: TurnRenders, { terminators, last }: Closing): Promise<number> {
  const call = { id: 'call_x', type: 'function', function: { name: 'x' } }
  const answer = { role: 'assistant', content: null, tool_calls: [call] }
  const said = (letter: string): Promise<Int32Array | null> =>
    renders.ended([message('user', 'x'), Buffer.from(JSON.stringify(withLetter(answer, letter)))])
  const one = await said('a')
  const other = one === null ? null : await said('b')
  const common = one === null || other === null ? null : closingOf(one, other)
  const end = (common?.length ?? 0) - last.length - 1
  return terminators.has(common?.[end] ?? -1) ? end : -1
}

/** An answer with a letter for what stands last in it: its text, or the arguments of its last tool call. */
export function withLetter(
  answer: Readonly<Record<string, unknown>>,
  letter: string,
): Readonly<Record<string, unknown>> {
  const calls: unknown = answer['tool_calls']
  if (!Array.isArray(calls) || calls.length === 0) return { ...answer, content: letter }
  const last = members(calls.at(-1))
  const called = { ...members(last['function']), arguments: JSON.stringify({ a: letter }) }
  return { ...answer, tool_calls: calls.with(-1, { ...last, function: called }) }
}

/** Of an object; of anything else none. */
export function members(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

async function learn(renders: TurnRenders): Promise<LearnedClosing> {
  const question = message('user', 'x')
  const one = await renders.ended([question, message('assistant', 'a')])
  const other = await renders.ended([question, message('assistant', 'b')])
  const closing = one === null || other === null ? null : closingOf(one, other)
  const [terminator, ...tail] = closing ?? []
  if (one === null || closing === null || terminator === undefined) return none(closing ?? unknownLast)
  if (renders.endsTurns) {
    return { terminators: new Set([terminator]), tail: Int32Array.from(tail), last: Int32Array.from(tail) }
  }
  // Behind the answer stands the dummy turn. What also ends that one is a terminator; anything else opens a turn.
  const said = await renders.opened([question, message('assistant', 'a'), message('user', 'y')])
  const behindDummy = said === null ? null : closingOf(one, said)
  if (behindDummy === null || behindDummy[0] !== terminator) return none(closing)
  return {
    terminators: new Set([terminator]),
    tail: commonStart(closing.subarray(1), behindDummy.subarray(1)),
    last: closing.slice(1),
  }
}

/** A template that ends answers with nothing of its own. */
function none(last: Int32Array): LearnedClosing {
  return { terminators: new Set(), tail: new Int32Array(0), last }
}

/** Where nobody knows how a render ends behind an answer, none ends as learned. */
const unknownLast = Int32Array.of(-1)

/** A message of a few letters, for renders that are about everything else. */
export function message(role: 'user' | 'assistant', content: string): Buffer {
  return Buffer.from(JSON.stringify({ role, content }))
}
