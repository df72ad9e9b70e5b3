import { hash } from 'node:crypto'
import { canonicalOrRaw, canonicalText, parseLossless } from '../../../core/index.ts'
import { type ChoiceAnswer, messageOf } from './answer.ts'

/**
 * Structural identity of chat messages: six of seven harnesses send a model's answer back re-serialised (compact
 * arguments, `1` for `1.0`, other key order, content as parts), and it is still the same turn. Reasoning, ids of
 * tool calls and cache marks do not count.
 */
export function turnDigest(message: unknown): string {
  const turn = loose(message)
  let text = `${String(turn['role'])}\u0000${contentText(turn['content'])}`
  const calls = turn['tool_calls']
  if (Array.isArray(calls)) {
    for (const call of calls) {
      const fn = loose(loose(call)['function'])
      const args = fn['arguments']
      text += `\u0000call\u0000${String(fn['name'])}\u0000${typeof args === 'string' ? canonicalOrRaw(args) : ''}`
    }
  }
  return hash('sha1', text, 'base64')
}

/**
 * Running digests of a conversation: element i identifies messages 0..i. A request extends an earlier call exactly
 * when one of its elements equals that call's digest with the answer appended.
 */
export function chainDigests(messages: readonly unknown[]): { readonly turns: string[]; readonly chain: string[] } {
  const turns = messages.map(turnDigest)
  const chain: string[] = []
  let before = ''
  for (const turn of turns) {
    before = extendChain(before, turn)
    chain.push(before)
  }
  return { turns, chain }
}

/** The digest of a choice that has ended, as the engine wrote its message or put together from its deltas. */
export function answeredTurn(choice: ChoiceAnswer): string {
  choice.turn ??= turnDigest(choice.message ?? messageOf(choice))
  choice.message = null
  return choice.turn
}

/** The chain digest after one more turn; `before` is empty where there is none. */
export function extendChain(before: string, turn: string): string {
  if (before === '') return turn
  return hash('sha1', `${before}\u0000${turn}`, 'base64')
}

function contentText(content: unknown): string {
  if (content === null || content === undefined) return ''
  if (typeof content === 'string') return content === '' ? '' : `t${content}`
  if (!Array.isArray(content)) return JSON.stringify(content)
  let text = ''
  const other: string[] = []
  for (const part of content) {
    const { cache_control: _mark, ...rest } = loose(part)
    if (rest['type'] === 'text' && typeof rest['text'] === 'string') text += rest['text']
    else other.push(canonicalText(parseLossless(JSON.stringify(rest))))
  }
  return [text === '' ? '' : `t${text}`, ...other].join('\u0001')
}

function loose(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : nothing
}

const nothing = {}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
