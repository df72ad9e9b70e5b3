import { hash } from 'node:crypto'
import type { DriftCause } from '../../trajectory/index.ts'
import type { ConversationMatch } from '../session/conversation.ts'
import type { ChatBody } from './chat-body.ts'
import { type Closings, members, message, type Render, TurnRenders, withLetter } from './closings.ts'
import { reasoningOf, scaffoldTokens } from './drift.ts'
import type { KnownAnswer, RecordedTree } from './recorded-tree.ts'
import { behindLetter, behindPrefix, type Behind, type Closing, joined, startsWith } from './splice-ids.ts'

/** What a prompt was made of, as far as a later one has to be made of the same. */
export interface ShapedPrompt {
  /** Of tools and options. */
  readonly renderDigest: string
  /** Thinking in messages that no recorded answer stands for: digests by the index of the message. */
  readonly thoughts: ReadonlyMap<number, string>
}

const noThoughts: ReadonlyMap<number, string> = new Map()

/** The thinking that a prompt holds beside its recorded answers. */
export function thoughtsIn(
  messages: readonly unknown[],
  recorded: readonly KnownAnswer[],
): ReadonlyMap<number, string> {
  const thoughts = messages.flatMap((message, index) => {
    const thinking = reasoningOf(message).trim()
    if (thinking === '' || recorded.some((one) => one.index === index)) return []
    return [[index, thoughtDigest(thinking)] as const]
  })
  return thoughts.length === 0 ? noThoughts : new Map(thoughts)
}

function thoughtDigest(thinking: string): string {
  return hash('sha1', thinking, 'base64')
}

/** The ids that a call is to be conditioned on. */
export interface PromptPlan {
  readonly ids: Int32Array
  /** `rendered`: the template's own ids; they extend the earlier path, or there is none. */
  readonly way: 'rendered' | 'prefix' | 'letter' | 'dummy'
  /** Why the earlier path was not extended although the conversation goes on from it. Null: it was, or the tree knows. */
  readonly forked: DriftCause | null
}

/** What planning a prompt needs to know. */
export interface PlanParts {
  readonly tree: RecordedTree
  readonly closings: Closings
  readonly history: 'sampled' | 'template'
  readonly render: Render
  /** The engine can render messages that end with an answer. */
  readonly endsTurns: boolean
  /** What shaped the prompt of an earlier call. */
  readonly shaped: (answer: KnownAnswer) => ShapedPrompt | undefined
}

/**
 * Plans the prompt of a call: where the conversation goes on from a recorded answer, the recorded ids of its path take
 * the place of their re-rendered copy, and what the template writes behind them stays. Nothing that the harness changed
 * is spliced over; where it cannot be told what belongs where, the template's prompt stands and the fork has a cause.
 */
export async function planPrompt(
  parts: PlanParts,
  { chat, match, rendered }: { chat: ChatBody; match: ConversationMatch; rendered: Int32Array },
): Promise<PromptPlan> {
  const asIs = (forked: DriftCause | null): PromptPlan => ({ ids: rendered, way: 'rendered', forked })
  const known = parts.tree.known(match.continues)
  const [answer, ...others] = known
  if (answer === undefined || match.edited) return asIs(null)
  const path = parts.tree.pathOf(answer)
  if (others.some((other) => !sameIds(parts.tree.pathOf(other), path))) return asIs('ambiguous')
  if (answer.exact && startsWith(rendered, path)) return asIs(null)
  if (!answer.exact) return asIs('stop_cut')
  const before = parts.tree.answersBefore(answer)
  const shaped = parts.shaped(answer)
  if (shaped?.renderDigest !== chat.renderDigest || !isUntouched(chat, before, shaped)) return asIs('harness_rewrite')
  if (!(await sameBeginning(parts, { chat, before, rendered }))) return asIs('harness_rewrite')
  if (parts.history === 'template') {
    const asTemplate = await byTemplate(parts, { chat, before, path })
    if (asTemplate !== null) return asTemplate
  }
  const renders = new TurnRenders(chat, parts.render, parts.endsTurns)
  const closing = await parts.closings.of(renders)
  const ended = endOf(answer, closing)
  if (chat.continuesLast && answer.index === chat.messages.length - 1) {
    return ended === null ? { ids: path, way: 'prefix', forked: null } : asIs('template')
  }
  // A model may end its turn with another terminator than the dummies showed (Llama: end of message after a call).
  if (ended !== null && closing.terminators.size > 0 && chat.text('stop_token_ids') === null) {
    closing.terminators.add(ended)
  }
  const found = await behindAnswer(parts, renders, { chat, answer, rendered, closing })
  const ids = found === null ? null : joined(path, ended !== null, found.behind)
  return ids === null || found === null ? asIs('template') : { ids, way: found.way, forked: null }
}

interface BehindFacts {
  readonly chat: ChatBody
  readonly answer: KnownAnswer
  readonly rendered: Int32Array
  readonly closing: Closing
}

/**
 * By prefix where the rendered prompt begins with the render up to the answer. Where the template changed something
 * before it, or writes an answer otherwise once somebody spoke behind it (Qwen3), letters in the answer's place show what
 * stands behind it; a template without terminators is shown the answer behind a short conversation instead.
 */
async function behindAnswer(
  parts: PlanParts,
  renders: TurnRenders,
  facts: BehindFacts,
): Promise<{ readonly behind: Behind; readonly way: PromptPlan['way'] } | null> {
  const { chat, answer, rendered, closing } = facts
  const upTo = await renders.ended(chat.messages.slice(0, answer.index + 1))
  const plain = upTo === null ? null : behindPrefix(rendered, upTo, closing)
  if (plain !== null) return { behind: plain, way: 'prefix' }
  if (closing.terminators.size === 0) {
    const short = await behindDummy(renders, facts)
    return short === null ? null : { behind: short, way: 'dummy' }
  }
  // A template may leave thinking out that no parser took from the text; with its own history that is a fork.
  if (parts.history === 'template' && (answer.facts.content ?? '').includes('</think>')) return null
  const lettered = await byLetter(parts, renders, facts)
  return lettered === null ? null : { behind: lettered, way: 'letter' }
}

/** The terminator that the model sampled at the end of an answer; null where it was cut off before. */
function endOf({ node, facts }: KnownAnswer, closing: Closing): number | null {
  const last = node.tokens.at(-1)
  if (last === undefined || facts.stoppedByString) return null
  if (closing.terminators.has(last)) return last
  return facts.finishReason === 'stop' || facts.finishReason === 'tool_calls' ? last : null
}

async function behindDummy(renders: TurnRenders, { chat, answer, closing }: BehindFacts): Promise<Behind | null> {
  const { reasoning: _one, reasoning_content: _other, ...echo } = members(chat.message(answer.index))
  const dummy = [message('user', 'x'), Buffer.from(JSON.stringify(echo))]
  const without = await renders.ended(dummy)
  const rest = chat.messages.slice(answer.index + 1)
  const withRest = without === null ? null : await renders.opened([...dummy, ...rest])
  return without === null || withRest === null ? null : behindPrefix(withRest, without, closing)
}

async function byLetter(
  { closings }: PlanParts,
  renders: TurnRenders,
  { chat, answer, rendered, closing }: BehindFacts,
): Promise<Behind | null> {
  const echo = members(chat.message(answer.index))
  const end = answer.facts.argumentTexts.length === 0 ? 0 : await closings.behindCall(renders)
  if (end === -1) return null
  const said = (letter: string): Promise<Int32Array | null> =>
    renders.opened(chat.messages.with(answer.index, Buffer.from(JSON.stringify(withLetter(echo, letter)))))
  const one = await said('a')
  const other = one === null ? null : await said('b')
  return one === null || other === null ? null : behindLetter(rendered, { one, other, end }, closing)
}

/**
 * History as the template keeps it. The harness's own forgetting is made good first, so that the template decides and
 * not the harness; then a thinking that the template leaves out is a fork. Null where the template keeps all of it.
 */
async function byTemplate(
  parts: PlanParts,
  { chat, before, path }: { chat: ChatBody; before: readonly KnownAnswer[]; path: Int32Array },
): Promise<PromptPlan | null> {
  const [oldest] = before.filter(({ facts }) => (facts.reasoning ?? '') !== '')
  if (oldest === undefined) return null
  const restored = chat.messages.map((bytes, index) => {
    const thinking = before.find((one) => one.index === index)?.facts.reasoning ?? ''
    return thinking === '' || reasoningOf(JSON.parse(bytes.toString())) !== '' ? bytes : withReasoning(bytes, thinking)
  })
  const ids = await parts.render(chat.over(restored, { open: true }))
  if (ids === null) return null
  if (startsWith(ids, path)) return { ids, way: 'rendered', forked: null }
  const forgotten = restored.map((bytes, index) => (index === oldest.index ? withReasoning(bytes, null) : bytes))
  const without = await parts.render(chat.over(forgotten, { open: true }))
  return without !== null && sameIds(ids, without) ? { ids, way: 'rendered', forked: 'think_stripped' } : null
}

function withReasoning(message: Buffer, reasoning: string | null): Buffer {
  const { reasoning: _one, reasoning_content: _other, ...rest } = members(JSON.parse(message.toString()))
  // Under both of its names: engines read the one that they write.
  return Buffer.from(JSON.stringify(reasoning === null ? rest : { ...rest, reasoning, reasoning_content: reasoning }))
}

/**
 * No thinking was changed since the answer was given; it may be missing. Every other word is the same: the conversation
 * says so.
 */
function isUntouched(chat: ChatBody, before: readonly KnownAnswer[], { thoughts }: ShapedPrompt): boolean {
  const end = (before.at(-1)?.index ?? -1) + 1
  return chat.messages.slice(0, end).every((bytes, index) => {
    if (!bytes.includes('"reasoning')) return true
    const thinking = reasoningOf(chat.message(index)).trim()
    if (thinking === '') return true
    const known = before.find((one) => one.index === index)
    return known === undefined
      ? thoughts.get(index) === thoughtDigest(thinking)
      : thinking === (known.facts.reasoning ?? '').trim()
  })
}

/**
 * What stands before the first answer is what stood there: tools and options are where templates put them. A template may
 * write an older turn otherwise once the user has spoken again, so that the same messages, rendered alone, decide.
 */
async function sameBeginning(
  { tree, render }: PlanParts,
  { chat, before, rendered }: { chat: ChatBody; before: readonly KnownAnswer[]; rendered: Int32Array },
): Promise<boolean> {
  const [first] = before
  if (first === undefined) return false
  const path = tree.pathOf(first)
  const start = path.length - first.node.tokens.length
  const end = start - scaffoldTokens
  if (end <= 0 || startsWith(rendered, path.subarray(0, end))) return true
  const alone = await render(chat.over(chat.messages.slice(0, first.index), { open: true }))
  return alone !== null && sameIds(alone, path.subarray(0, start))
}

function sameIds(one: Int32Array, other: Int32Array): boolean {
  return one.length === other.length && startsWith(one, other)
}
