import { z } from 'zod'
import { jsonLine, rawJson } from '../json-line.ts'

/** Why a conversation cannot be said in this form. */
export type Unsaid =
  /** More than text in a message. */
  | 'media'
  /** Text beside a tool call. */
  | 'text_beside_call'
  /** Several calls in one answer. */
  | 'parallel_calls'
  /** Arguments of a call that are no JSON object. */
  | 'arguments'
  /** A system's words that do not stand first. */
  | 'system_inside'
  /** Not by turns: user or result, then an answer, to an answer at the end. */
  | 'order'

const message = z.looseObject({
  role: z.string(),
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))]).nullish(),
  tool_calls: z
    .array(z.looseObject({ function: z.looseObject({ name: z.string(), arguments: z.string() }) }))
    .nullish(),
})

interface Turn {
  readonly from: 'human' | 'gpt' | 'function_call' | 'observation' | 'system'
  readonly value: string
}

export interface Said {
  readonly system: string
  readonly conversations: readonly Turn[]
}

/** A conversation in the words of ShareGPT, or the first reason why it cannot be said. `isStrict`: as LLaMA-Factory takes it. */
export function turnsOf(texts: readonly string[], isStrict: boolean): Said | Unsaid {
  let system = ''
  const turns: Turn[] = []
  for (const [index, text] of texts.entries()) {
    const { role, content, tool_calls: calls } = message.parse(JSON.parse(text))
    const said = textOf(content)
    if (said === null) return 'media'
    if (role === 'system' || role === 'developer') {
      if (index === 0) system = said
      else if (isStrict) return 'system_inside'
      else turns.push({ from: 'system', value: said })
    } else if (role === 'user') turns.push({ from: 'human', value: said })
    else if (role === 'tool') turns.push({ from: 'observation', value: said })
    else if (calls === null || calls === undefined || calls.length === 0) turns.push({ from: 'gpt', value: said })
    else {
      if (isStrict && said.trim() !== '') return 'text_beside_call'
      if (isStrict && calls.length > 1) return 'parallel_calls'
      if (!calls.every((one) => isObject(one.function.arguments))) return 'arguments'
      if (said.trim() !== '') turns.push({ from: 'gpt', value: said })
      const made = calls.map(({ function: { name, arguments: given } }) =>
        jsonLine({ name, arguments: rawJson(given) }).trimEnd(),
      )
      turns.push({ from: 'function_call', value: made.length === 1 ? (made[0] ?? '') : `[${made.join(',')}]` })
    }
  }
  if (isStrict && !isByTurns(turns)) return 'order'
  return { system, conversations: turns }
}

function isByTurns(turns: readonly Turn[]): boolean {
  return (
    turns.length % 2 === 0 &&
    turns.every(({ from }, at) =>
      at % 2 === 0 ? from === 'human' || from === 'observation' : from === 'gpt' || from === 'function_call',
    )
  )
}

function textOf(content: z.infer<typeof message>['content']): string | null {
  if (typeof content === 'string') return content
  const parts = content ?? []
  return parts.every((part) => part.text !== undefined) ? parts.map((part) => part.text).join('') : null
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}
