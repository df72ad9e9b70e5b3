import { editObject, scanElements, scanMembers } from '../../core/index.ts'
import type { Injection } from '../../trajectory/index.ts'

/** A list of messages with what was put into it. */
export interface InjectedMessages {
  /** JSON text of the list. What was not touched keeps its bytes. */
  readonly text: string
  readonly messages: readonly unknown[]
  /** Messages that were put in front of all others. */
  readonly shift: 0 | 1
  /** Of what was put in, in order. */
  readonly labels: readonly string[]
}

/** A chat request, as far as messages are put into it. */
export interface InjectedRequest {
  readonly bytes: Uint8Array
  readonly messages: readonly unknown[]
}

/** How many messages are answers. */
export function answersIn(messages: readonly unknown[]): number {
  return messages.filter((message) => roleOf(message) === 'assistant').length
}

/**
 * Puts texts into a request. `shown`: answers that the harness itself wrote before the first of the policy, as examples. Null where
 * nothing is to be put in.
 */
export function putInto(
  items: readonly Injection[],
  { bytes, messages }: InjectedRequest,
  shown: number,
): InjectedMessages | null {
  const answers = Math.max(0, answersIn(messages) - shown)
  const placed = items.flatMap((item) => {
    const from = answersBefore(item)
    if (item.keep === 'once' ? answers !== from : answers < from) return []
    const index = placeOf(item, messages, shown)
    return index === null ? [] : [{ item, index }]
  })
  if (placed.length === 0) return null
  const texts = messageTexts(bytes)
  const front: string[] = []
  for (const { item, index } of placed) {
    const text = texts[index]
    if (text !== undefined) texts[index] = withText(text, item.text)
    else if (front.length === 0) front.push(JSON.stringify({ role: 'system', content: item.text }))
    else front[0] = withText(front[0] ?? '', item.text)
  }
  const text = `[${[...front, ...texts].join(',')}]`
  const seen: unknown = JSON.parse(text)
  return {
    text,
    messages: Array.isArray(seen) ? seen : [],
    shift: front.length === 0 ? 0 : 1,
    labels: placed.map(({ item }) => item.label),
  }
}

/** True where the prompt behind an answer has less than the prompt of that answer had. `answers`: that stood before it. */
export function takesOut(items: readonly Injection[], answers: number): boolean {
  return items.some((item) => item.keep === 'once' && answersBefore(item) === answers)
}

function answersBefore({ at }: Injection): number {
  return typeof at === 'string' ? 0 : at.turn
}

/** Index of the message that a text stands behind; -1: of one that is to be made; null: there is no such place. */
function placeOf({ at }: Injection, messages: readonly unknown[], shown: number): number | null {
  if (at === 'system') return messages.findIndex((message) => ['system', 'developer'].includes(roleOf(message)))
  if (at === 'task') {
    const first = messages.findIndex((message) => roleOf(message) === 'user')
    return first === -1 ? null : first
  }
  let answers = 0
  let end = messages.length
  for (const [index, message] of messages.entries()) {
    if (roleOf(message) !== 'assistant') continue
    if (answers === shown + at.turn) {
      end = index
      break
    }
    answers += 1
  }
  // An answer that is to be gone on with says nothing to the agent.
  return end === 0 || roleOf(messages[end - 1]) === 'assistant' ? null : end - 1
}

function messageTexts(bytes: Uint8Array): string[] {
  const list = scanMembers(bytes).members.findLast(({ key }) => key === 'messages')
  if (list === undefined) return []
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  return scanElements(bytes, list.valueStart).map(({ start, end }) => buffer.toString('utf8', start, end))
}

/** The message with a text behind its own. */
function withText(message: string, text: string): string {
  const read: unknown = JSON.parse(message)
  const content = typeof read === 'object' && read !== null && 'content' in read ? read.content : null
  return editObject(Buffer.from(message), { set: { content: JSON.stringify(longer(content, text)) } }).toString()
}

function longer(content: unknown, text: string): unknown {
  if (Array.isArray(content)) {
    const at = content.findLastIndex((part: unknown) => textOf(part) !== null)
    const parts: readonly unknown[] = content
    if (at === -1) return [...parts, { type: 'text', text }]
    return parts.map((part, index) =>
      index === at && typeof part === 'object' ? { ...part, text: joined(textOf(part) ?? '', text) } : part,
    )
  }
  return joined(typeof content === 'string' ? content : '', text)
}

function joined(before: string, text: string): string {
  return before === '' ? text : `${before}\n\n${text}`
}

function textOf(part: unknown): string | null {
  const isText = typeof part === 'object' && part !== null && 'type' in part && part.type === 'text' && 'text' in part
  return isText && typeof part.text === 'string' ? part.text : null
}

function roleOf(message: unknown): string {
  const role: unknown = typeof message === 'object' && message !== null && 'role' in message ? message.role : null
  return typeof role === 'string' ? role : ''
}
