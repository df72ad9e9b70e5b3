import type { Generated, GeneratedPart } from '../engines/token-engine.ts'
import { stopAt } from './stop-cut.ts'

type Loose = Readonly<Record<string, unknown>>

/** What every piece of an answer says about itself. */
export interface ReplyHead {
  readonly callId: string
  readonly model: string | null
  readonly created: number | null
}

/** What an answer is made with besides the generated parts. */
interface ReplyFrame {
  readonly head: ReplyHead
  readonly stops: readonly string[]
  /** Whether the client asked to see the stop string. */
  readonly showsStops: boolean
}

/**
 * A derendered completion in the shape of vLLM's chat route with `return_token_ids`: the engine's own message, beside
 * it the ids and logprobs as they were generated. The prompt's ids are told by themselves (`AnswerSink.prompted`): they
 * would be written and read again for nothing.
 */
export function completionOf(derendered: Loose, generated: Generated, { head, stops, showsStops }: ReplyFrame): Buffer {
  return Buffer.from(JSON.stringify(completion(derendered, generated, { head, stops, showsStops })))
}

/** An answer whose ids nobody could turn into a message: what belongs to the record of it. */
export function sampledOnly(generated: Generated, head: ReplyHead): Loose {
  const choices = generated.parts.map(({ index, finishReason }) => ({ index, finish_reason: finishReason }))
  return completion({ choices }, generated, { head, stops: [], showsStops: false })
}

function completion(derendered: Loose, generated: Generated, { head, stops, showsStops }: ReplyFrame): Loose {
  const choices = listOf(derendered['choices']).map((choice, position) => {
    const index = typeof choice['index'] === 'number' ? choice['index'] : position
    const part = generated.parts.find((one) => one.index === index)
    if (part === undefined) return choice
    const texts = textsOf(choice, part)
    const stop = part.finishReason === 'stop' ? (part.stopReason ?? stopAt(texts, stops)) : null
    return {
      ...choice,
      ...(stop === null ? {} : { message: cutMessage(choice['message'], stop, showsStops), stop_reason: stop }),
      ...tokensOf(part, texts, choice),
    }
  })
  const first = generated.parts[0]?.weightVersions[0]?.version
  return {
    ...derendered,
    ...headMembers(head, 'chat.completion'),
    choices,
    usage: generated.usage ?? derendered['usage'] ?? null,
    ...(first === undefined ? {} : { weight_version: first }),
  }
}

/**
 * One derendered step as events of vLLM's chat stream. A step of several tokens may hold the end of a text and the calls
 * behind it; clients read such a delta as one of them (Haystack refuses it, LlamaIndex keeps the first call), so each
 * event says one thing. The ids and logprobs of the step stand in the first event, the finish in the last.
 */
export function chunksOf(derendered: Loose, part: GeneratedPart, head: ReplyHead): Buffer[] {
  const choice = listOf(derendered['choices'])[0] ?? { delta: {}, finish_reason: null }
  const { usage: _usage, ...rest } = derendered
  const deltas = apart(isObject(choice['delta']) ? choice['delta'] : {})
  const sampled = tokensOf(part, textsOf(choice, part), choice)
  return deltas.map((delta, at) =>
    event({
      ...rest,
      ...headMembers(head, 'chat.completion.chunk'),
      choices: [
        {
          ...choice,
          delta,
          index: part.index,
          ...(at === 0 ? sampled : { ...sampled, token_ids: [], logprobs: null, routed_experts: undefined }),
          ...(at < deltas.length - 1 ? { finish_reason: null, stop_reason: undefined } : {}),
        },
      ],
    }),
  )
}

/** A delta as deltas of one kind each: thinking, text, then each tool call. What else it holds stays with the first. */
function apart(delta: Loose): Loose[] {
  const { reasoning, reasoning_content, content, tool_calls, ...rest } = delta
  const texts = Object.entries({ reasoning, reasoning_content, content }).filter(
    ([, text]) => typeof text === 'string' && text !== '',
  )
  const kinds: Loose[] = texts.map(([name, text]) => ({ [name]: text }))
  for (const call of listOf(tool_calls)) kinds.push({ tool_calls: [call] })
  if (kinds.length < 2) return [delta]
  return kinds.map((kind, at) => (at === 0 ? { ...rest, ...kind } : kind))
}

export function headOf(callId: string, { model, created }: Generated): ReplyHead {
  return { callId, model, created }
}

export function usageChunk(head: ReplyHead, usage: Loose): Buffer {
  return event({ ...headMembers(head, 'chat.completion.chunk'), choices: [], usage })
}

export function event(payload: Loose): Buffer {
  return Buffer.from(`data: ${JSON.stringify(payload)}\n\n`)
}

function headMembers(head: ReplyHead, object: string): Loose {
  return {
    id: `chatcmpl-${head.callId}`,
    object,
    ...(head.model === null ? {} : { model: head.model }),
    ...(head.created === null ? {} : { created: head.created }),
  }
}

/** Ids and logprobs as generated; texts as derendered. */
function tokensOf(part: GeneratedPart, texts: readonly string[], choice: Loose): Loose {
  const entries = entriesOf(choice)
  const versions = part.weightVersions.at(-1)?.version
  return {
    token_ids: part.ids,
    logprobs:
      part.logprobs.length === 0
        ? null
        : {
            content: part.logprobs.map((logprob, at) => ({
              token: texts[at] ?? '',
              logprob,
              bytes: entries[at]?.['bytes'] ?? null,
              top_logprobs: entries[at]?.['top_logprobs'] ?? [],
            })),
          },
    ...(versions === undefined ? {} : { weight_version: versions }),
    ...(part.routedExperts === null ? {} : { routed_experts: part.routedExperts }),
  }
}

/** The text of each token, empty where the engine's reply does not have one for each. */
function textsOf(choice: Loose, part: GeneratedPart): string[] {
  const entries = entriesOf(choice)
  if (entries.length !== part.ids.length) return []
  return entries.map(({ token }) => (typeof token === 'string' ? token : ''))
}

function entriesOf(choice: Loose): readonly Loose[] {
  const logprobs = choice['logprobs']
  return isObject(logprobs) ? listOf(logprobs['content']) : []
}

/**
 * Ids run past a matched stop string; what the client sees ends before it, or with it where it asked to see it, whether the
 * engine cut the text or not.
 */
function cutMessage(message: unknown, stop: string, shown: boolean): unknown {
  if (!isObject(message) || typeof message['content'] !== 'string') return message
  const [before = ''] = message['content'].split(stop, 1)
  return { ...message, content: shown ? before + stop : before }
}

function listOf(value: unknown): readonly Loose[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

function isObject(value: unknown): value is Loose {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
