import { parseLossless, stringifyLossless, type LosslessJson } from '../../core/index.ts'
import type { DriftCause } from '../../trajectory/index.ts'
import type { ChoiceAnswer } from '../dialects/chat/answer.ts'
import { answeredTurn, turnDigest } from '../dialects/chat/turns.ts'
import { spelled, type TokenText, tokenText } from './token-text.ts'

/** More tokens than any template puts between the last message and an answer (header, opening of the thinking). */
export const scaffoldTokens = 12

/** What was answered, as far as it explains why the harness's next prompt looks different. */
export interface AnswerFacts {
  readonly reasoning: string | null
  /** The visible text. */
  readonly content: string | null
  readonly argumentTexts: readonly string[]
  readonly finishReason: string | null
  readonly stoppedByString: boolean
  /** Structural identity of the answer as a message. */
  readonly turn: string
  /** What the tokens spell. Null where the engine gave no texts. */
  readonly text: TokenText | null
}

export function answerFacts(choice: ChoiceAnswer): AnswerFacts {
  return {
    reasoning: choice.reasoning,
    content: choice.content,
    argumentTexts:
      choice.toolCalls.length === 0 ? noTexts : choice.toolCalls.filter(Boolean).map((call) => call.arguments),
    finishReason: choice.finishReason,
    stoppedByString: typeof choice.stopReason === 'string',
    turn: answeredTurn(choice),
    text: textOf(choice),
  }
}

const noTexts: readonly string[] = []

/** The same of an answer as it is stored. */
export function pastAnswerFacts(
  message: unknown,
  { finishReason, stoppedByString }: Pick<AnswerFacts, 'finishReason' | 'stoppedByString'>,
): AnswerFacts {
  const reasoning = reasoningOf(message)
  const content = read(message, 'content')
  return {
    reasoning: reasoning === '' ? null : reasoning,
    content: typeof content === 'string' ? content : null,
    argumentTexts: argumentsOf(message),
    finishReason,
    stoppedByString,
    turn: turnDigest(message),
    text: null,
  }
}

function textOf({ tokenTexts, tokenIds, content }: ChoiceAnswer): TokenText | null {
  return tokenTexts.length === 0 || tokenTexts.length !== tokenIds.length ? null : tokenText(tokenTexts, content)
}

/** A prompt that should have extended an answer and did not. */
export interface Difference {
  /** The first answer at or behind the difference; null where none is known. */
  readonly answer: AnswerFacts | null
  /** Tokens of that answer before the difference; negative: it lies in what stood before the answer. */
  readonly at: number
  /** The answer as it came back. */
  readonly echoed: unknown
  readonly edited: boolean
  /** Fewer messages stand before the answer than before. */
  readonly dropped: boolean
  /** The answer's ids. */
  readonly tokens: Int32Array
  /** The prompt's ids from the difference on. */
  readonly got: Int32Array
  /** The answer stands where it stood, behind results of tools that the harness has cleared. */
  readonly cleared: boolean
  readonly ambiguous: boolean
  /** The prompt is shorter than the earlier path: the engine or the harness cut it. */
  readonly shorter: boolean
}

/**
 * Why a prompt did not extend the answer that it contains, from the wire and from the place of the difference in the
 * text of the answer. `unknown` where neither shows anything; the ids on both sides are in the drift report.
 */
export function driftCause(difference: Difference): DriftCause {
  const { answer, at, echoed, edited, cleared, dropped, ambiguous, shorter } = difference
  if (ambiguous) return 'ambiguous'
  if (edited && cleared) return 'context_edit'
  if (edited) return dropped ? 'compaction' : 'harness_rewrite'
  if (answer === null) return shorter ? 'truncated' : 'unknown'
  if (answer.stoppedByString) return 'stop_cut'
  if (answer.finishReason === 'length') return 'truncated'
  const thinks = (answer.reasoning ?? '') !== ''
  // Equal messages and another beginning: the harness changed its tools or the template's options, or it was cut off.
  if (at < -scaffoldTokens) return shorter ? 'truncated' : 'harness_rewrite'
  if (at < 0) return thinks ? 'think_stripped' : 'template'
  // Blanks at the edges do not make another answer, and still stand in its ids.
  if (isRetold(echoed, answer)) return 'harness_rewrite'
  const resent = argumentsOf(echoed).some((text, index) => text !== answer.argumentTexts[index])
  if (answer.text === null) {
    if (resent) return 'json_reserialised'
    if (thinks && at <= thoughtHead) return 'think_stripped'
    return shorter ? 'truncated' : 'unknown'
  }
  return causeInText(difference, { answer, text: answer.text, resent })
}

/** The text came back, in other blanks. */
function isRetold(echoed: unknown, { content }: AnswerFacts): boolean {
  const told = read(echoed, 'content')
  const isText = typeof told === 'string' || told === null
  return isText && (told ?? '') !== (content ?? '') && (told ?? '').trim() === (content ?? '').trim()
}

/**
 * What Claude Code ("microcompact") and opencode ("prune") put in the place of results of tools that they no longer send,
 * as Anthropic's `clear_tool_uses` has it done on the server.
 */
const clearedResult = '[Old tool result content cleared]'

/** Some message is the result of a tool whose content was cleared. */
export function hasClearedResults(messages: readonly unknown[]): boolean {
  return messages.some((message) => {
    if (read(message, 'role') !== 'tool') return false
    const content = read(message, 'content')
    const parts = Array.isArray(content) ? content.map((part: unknown) => read(part, 'text')) : [content]
    return parts.some((text) => typeof text === 'string' && text.trim() === clearedResult)
  })
}

/** The difference lies inside the answer: what stands there tells what was done to it. */
function causeInText(
  difference: Difference,
  { answer, text, resent }: { readonly answer: AnswerFacts; readonly text: TokenText; readonly resent: boolean },
): DriftCause {
  const { at } = difference
  const { lengths } = text
  const all = spelled(text, answer.content)
  const from = at <= lengths.length ? endOf(lengths, at) : all.length
  const to = at < lengths.length ? endOf(lengths, at + 1) : all.length
  const thinking = answer.reasoning ?? ''
  const thought = all.indexOf(thinking)
  if (thinking !== '' && from <= thought + thinking.length) {
    // What is stripped is gone from its first word on.
    if (thought !== -1 && all.slice(thought, from).trim() !== '') return 'boundary_merge'
    return endsAgain(difference, { lengths, all, end: thought + thinking.length }) ? 'boundary_merge' : 'think_stripped'
  }
  // The token that ends an answer: the template writes another, or none.
  if (at >= lengths.length - 1) return 'template'
  let search = 0
  for (const args of answer.argumentTexts) {
    const start = args === '' ? -1 : all.indexOf(args, search)
    // A parser that rewrites arguments leaves no trace of them in the text.
    if (start === -1) return 'json_reserialised'
    search = start + args.length
    if (to <= start || from >= search) continue
    return !resent && isAsTemplatesWrite(args) ? 'boundary_merge' : 'json_reserialised'
  }
  if (resent && from >= search) return 'json_reserialised'
  // Blanks around content and calls are the template's to write, those between words are not.
  const words = (answer.content ?? '').trim()
  const start = words === '' ? -1 : all.indexOf(words)
  if (start !== -1 && from > start && to < start + words.length) return 'boundary_merge'
  return all.slice(from, to).trim() === '' ? 'template' : 'boundary_merge'
}

/** Where the text of the first `count` tokens ends. */
function endOf(lengths: string, count: number): number {
  let end = 0
  for (let at = 0; at < count; at += 1) end += lengths.charCodeAt(at)
  return end
}

/**
 * The token behind the thinking (`</think>`) stands in the prompt too, about as far behind the difference as in the answer:
 * the thinking is there in other tokens. Templates that strip it leave nothing, or an empty block.
 */
function endsAgain(
  { tokens, at, got }: Difference,
  { lengths, all, end }: { readonly lengths: string; readonly all: string; readonly end: number },
): boolean {
  let start = endOf(lengths, at)
  let marker = at
  for (; marker < lengths.length; marker += 1) {
    const next = start + lengths.charCodeAt(marker)
    if (start >= end && all.slice(start, next).trim() !== '') break
    start = next
  }
  const id = tokens[marker]
  const distance = id === undefined ? -1 : got.indexOf(id)
  const length = marker - at
  return distance > emptyBlock && distance >= length / 4 && distance <= length * 1.5
}

/** More tokens than open a thinking block before its first word. */
const thoughtHead = 4

/** Tokens of a thinking block without words, at most. */
const emptyBlock = 2

/** JSON in the spacing of Python's `json.dumps`, which is what templates write arguments in: it comes back unchanged. */
function isAsTemplatesWrite(text: string): boolean {
  try {
    return pythonText(parseLossless(text)) === text
  } catch {
    return false
  }
}

function pythonText(value: LosslessJson): string {
  if (value.kind === 'array') return `[${value.items.map(pythonText).join(', ')}]`
  if (value.kind !== 'object') return stringifyLossless(value)
  return `{${value.members.map(({ raw, value: member }) => `${raw}: ${pythonText(member)}`).join(', ')}}`
}

function argumentsOf(message: unknown): string[] {
  const calls = read(message, 'tool_calls')
  if (!Array.isArray(calls)) return []
  return calls.map((call: unknown) => {
    const text = read(read(call, 'function'), 'arguments')
    return typeof text === 'string' ? text : ''
  })
}

/** Thinking of a message, under either of its names. */
export function reasoningOf(message: unknown): string {
  const text = read(message, 'reasoning') ?? read(message, 'reasoning_content')
  return typeof text === 'string' ? text : ''
}

function read(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}
