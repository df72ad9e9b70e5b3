import { z } from 'zod'
import { RawJson, rawJson } from '../json-line.ts'

/** An answer as its row has it. */
export interface Said {
  /** It is not trained in this row: replayed, owned by another row, or of a class that does not train. */
  readonly isCopied: boolean
  /** Absent: nothing was sampled here. */
  readonly metrics: RawJson | undefined
}

/** A step as ATIF has it, without its number's neighbours: members in order, `undefined` ones absent. */
export type Step = Readonly<Record<string, unknown>>

const toolCall = z.looseObject({
  id: z.string(),
  function: z.looseObject({ name: z.string(), arguments: z.string().default('{}') }),
})
const message = z.looseObject({
  role: z.string(),
  content: z.union([z.string(), z.array(z.unknown())]).nullish(),
  reasoning_content: z.string().nullish(),
  reasoning: z.string().nullish(),
  tool_calls: z.array(toolCall).nullish(),
  tool_call_id: z.string().nullish(),
})
type Message = z.infer<typeof message>

const imageTypes: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
}
const part = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  image_url: z.looseObject({ url: z.string() }).optional(),
})

interface Draft {
  readonly members: Record<string, unknown>
  readonly callIds: ReadonlySet<string>
  readonly results: object[]
}

/**
 * The steps of a conversation. Tool results are the observation of the answer that called the tool; one that no answer called is a
 * step of the system. `answers` are those of the row: after a fork earlier answers are prompt text, and only the last one is known.
 */
export function stepsOf(
  texts: readonly string[],
  { answers, modelOf }: { readonly answers: readonly Said[]; readonly modelOf: (nth: number) => string | null },
): readonly Step[] {
  const messages = texts.map((text) => message.parse(JSON.parse(text)))
  const places = messages.flatMap(({ role }, index) => (role === 'assistant' ? [index] : []))
  const drafts: Draft[] = []
  for (const [index, one] of messages.entries()) {
    if (one.role === 'tool') {
      observe(drafts, one)
      continue
    }
    if (one.role !== 'assistant') {
      drafts.push(plain(one.role === 'user' ? 'user' : 'system', one.content))
      continue
    }
    const nth = places.indexOf(index)
    const known = answers.length === places.length ? nth : index === places.at(-1) ? answers.length - 1 : -1
    drafts.push(answer(one, answers[known], known === -1 ? null : modelOf(known)))
  }
  return drafts.map(({ members, results }, index) => ({
    step_id: index + 1,
    ...members,
    observation: results.length === 0 ? undefined : { results },
  }))
}

function plain(source: 'user' | 'system', content: Message['content']): Draft {
  return { members: { source, message: contentOf(content) }, callIds: new Set(), results: [] }
}

function answer(one: Message, said: Said | undefined, model: string | null): Draft {
  const calls = one.tool_calls ?? []
  return {
    members: {
      source: 'agent',
      message: contentOf(one.content),
      model_name: model ?? undefined,
      reasoning_content: one.reasoning_content ?? one.reasoning ?? undefined,
      tool_calls: calls.length === 0 ? undefined : new RawJson(`[${calls.map(callOf).join(',')}]`),
      metrics: said?.metrics,
      is_copied_context: said === undefined || said.isCopied ? true : undefined,
    },
    callIds: new Set(calls.map(({ id }) => id)),
    results: [],
  }
}

/** Arguments as the model wrote them where they are an object, which ATIF wants; else none, and the text beside. */
function callOf({ id, function: { name, arguments: text } }: z.infer<typeof toolCall>): string {
  const head = `"tool_call_id":${JSON.stringify(id)},"function_name":${JSON.stringify(name)}`
  return isObject(text)
    ? `{${head},"arguments":${rawJson(text).json}}`
    : `{${head},"arguments":{},"extra":{"arguments_text":${JSON.stringify(text)}}}`
}

function isObject(text: string): boolean {
  try {
    const parsed: unknown = JSON.parse(text)
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)
  } catch {
    return false
  }
}

function observe(drafts: Draft[], { tool_call_id: id, content }: Message): void {
  const caller = drafts.findLast(({ callIds }) => typeof id === 'string' && callIds.has(id))
  if (caller !== undefined) {
    caller.results.push({ source_call_id: id, content: contentOf(content) })
    return
  }
  const system = plain('system', '')
  system.results.push({ content: contentOf(content) })
  drafts.push(system)
}

/** A text, or parts where there is more than text. What ATIF has no part for is its JSON as text. */
function contentOf(content: Message['content']): string | readonly object[] {
  if (typeof content === 'string') return content
  const parts = (content ?? []).map(partOf)
  return parts.every((one) => one.type === 'text') ? parts.map((one) => one.text ?? '').join('') : parts
}

function partOf(value: unknown): { readonly type: string; readonly text?: string; readonly source?: object } {
  const { success, data } = part.safeParse(value)
  if (success && data.text !== undefined) return { type: 'text', text: data.text }
  const url = success ? data.image_url?.url : undefined
  const mediaType = url === undefined ? undefined : imageTypes[(/\.(\w+)(?:\?.*)?$/.exec(url)?.[1] ?? '').toLowerCase()]
  if (url !== undefined && mediaType !== undefined)
    return { type: 'image', source: { media_type: mediaType, path: url } }
  return { type: 'text', text: JSON.stringify(value) }
}
