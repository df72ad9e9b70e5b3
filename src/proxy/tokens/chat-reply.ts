import type { Generated, GeneratedPart } from '../engines/token-engine.ts'
import { stopAt } from './stop-cut.ts'

type Loose = Readonly<Record<string, unknown>>

/** What every piece of an answer says about itself. */
export interface ReplyHead {
  readonly callId: string
  readonly promptIds: readonly number[] | Int32Array
  readonly model: string | null
  readonly created: number | null
}

/**
 * A derendered completion in the shape of vLLM's chat route with `return_token_ids`: the engine's own message, beside
 * it the ids and logprobs as they were generated.
 */
export function completionOf(
  derendered: Loose,
  generated: Generated,
  { head, stops }: { readonly head: ReplyHead; readonly stops: readonly string[] },
): Buffer {
  const choices = listOf(derendered['choices']).map((choice, position) => {
    const index = typeof choice['index'] === 'number' ? choice['index'] : position
    const part = generated.parts.find((one) => one.index === index)
    if (part === undefined) return choice
    const texts = textsOf(choice, part)
    const stop = part.finishReason === 'stop' ? stopAt(texts, stops) : null
    return {
      ...choice,
      ...(stop === null ? {} : { message: cutMessage(choice['message'], stop), stop_reason: stop }),
      ...tokensOf(part, texts, choice),
    }
  })
  const first = generated.parts[0]?.weightVersions[0]?.version
  return Buffer.from(
    JSON.stringify({
      ...derendered,
      ...headOf(head, 'chat.completion'),
      prompt_token_ids: [...head.promptIds],
      choices,
      usage: generated.usage ?? derendered['usage'] ?? null,
      ...(first === undefined ? {} : { weight_version: first }),
    }),
  )
}

/** One derendered step as an event of vLLM's chat stream; `first` carries the prompt's ids. */
export function chunkOf(
  derendered: Loose,
  part: GeneratedPart,
  { head, first }: { readonly head: ReplyHead; readonly first: boolean },
): Buffer {
  const choice = listOf(derendered['choices'])[0] ?? { delta: {}, finish_reason: null }
  const { usage: _usage, ...rest } = derendered
  return event({
    ...rest,
    ...headOf(head, 'chat.completion.chunk'),
    ...(first ? { prompt_token_ids: [...head.promptIds] } : {}),
    choices: [{ ...choice, index: part.index, ...tokensOf(part, textsOf(choice, part), choice) }],
  })
}

export function usageChunk(head: ReplyHead, usage: Loose): Buffer {
  return event({ ...headOf(head, 'chat.completion.chunk'), choices: [], usage })
}

export function event(payload: Loose): Buffer {
  return Buffer.from(`data: ${JSON.stringify(payload)}\n\n`)
}

function headOf(head: ReplyHead, object: string): Loose {
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

/** Ids run past a matched stop string; what the client sees does not, whether the engine cut it or not. */
function cutMessage(message: unknown, stop: string): unknown {
  if (!isObject(message) || typeof message['content'] !== 'string') return message
  const at = message['content'].indexOf(stop)
  return at === -1 ? message : { ...message, content: message['content'].slice(0, at) }
}

function listOf(value: unknown): readonly Loose[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

function isObject(value: unknown): value is Loose {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
