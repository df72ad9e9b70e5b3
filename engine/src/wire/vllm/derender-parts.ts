import { thinkingOpenIn, viewPrompt } from '../../chat/prompt-view.ts'
import { validationError } from '../../errors.ts'
import { JsonNumber } from '../../json/lossless.ts'
import { readCount, readFlag, readList, readText, readTokenIds } from '../../json/read.ts'
import { IncrementalText } from '../../tokenizer/incremental.ts'
import { readToolChoice } from './tool-choice.ts'
import type { Engine } from '../../engine.ts'
import type { FinishReason } from '../../generation/choice.ts'
import type { Json, JsonObject } from '../../json/lossless.ts'
import type { MessageSetting } from './chat-message.ts'

/** One choice of a generate answer or chunk, as derender reads it. */
export interface GivenChoice {
  readonly index: number
  readonly ids: Int32Array
  readonly finish: FinishReason | undefined
  readonly logprobs: Json
}

/** The choices of a generate answer or chunk. Throws a 400 for one that is no object. */
export function readChoices(answer: JsonObject, engine: Engine): GivenChoice[] {
  return (readList(answer, 'choices') ?? []).map((choice, at) => {
    if (!(choice instanceof Map)) throw validationError('Input should be a valid dictionary', `choices.${at}`)
    const finish = readText(choice, 'finish_reason')
    return {
      index: readCount(choice, 'index') ?? at,
      ids: readTokenIds(choice, 'token_ids', engine.profile.vocabulary.size) ?? new Int32Array(0),
      finish: finish === 'stop' || finish === 'length' || finish === 'abort' ? finish : undefined,
      logprobs: choice.get('logprobs') ?? null,
    }
  })
}

/** How messages are to be read, from the chat request and the prompt's ids. */
export function settingOf(body: JsonObject, chat: JsonObject, engine: Engine): MessageSetting {
  const tools = readList(chat, 'tools') ?? []
  const { vocabulary, grammar } = engine.profile
  const prompt = readTokenIds(body, 'prompt_token_ids', vocabulary.size) ?? new Int32Array(0)
  return {
    toolChoice: readToolChoice(chat, tools),
    thinkingOpen: thinkingOpenIn(viewPrompt(prompt, vocabulary, grammar), vocabulary),
    includeReasoning: readFlag(chat, 'include_reasoning') ?? true,
    parallelToolCalls: readFlag(chat, 'parallel_tool_calls') ?? true,
    role: 'assistant',
  }
}

/** Control tokens are hidden, except where the family's tool parser needs them; a terminator is no text. */
export function detokenizer(
  engine: Engine,
  setting: MessageSetting,
): { text: (ids: Iterable<number>) => string; end: () => string } {
  const { profile } = engine
  const incremental = new IncrementalText(profile.vocabulary, {
    skipSpecial: setting.toolChoice.kind === 'none' || profile.callTags.close !== undefined,
  })
  const ends = new Set([profile.terminator.afterCall, profile.terminator.afterText])
  return {
    text: (ids) => [...ids].map((id) => (ends.has(id) ? '' : incremental.push(id))).join(''),
    end: () => incremental.end(),
  }
}

/** Generate logprobs with ids become chat logprobs with text. */
export function chatLogprobs(given: Json, engine: Engine): unknown {
  const content = given instanceof Map ? given.get('content') : undefined
  if (!Array.isArray(content)) return null
  const entry = (item: Json): Record<string, unknown> | undefined => {
    if (!(item instanceof Map)) return undefined
    const named = /^token_id:(\d+)$/.exec(readText(item, 'token') ?? '')?.[1]
    const id = readCount(item, 'token_id') ?? (named === undefined ? undefined : Number(named))
    const logprob = item.get('logprob')
    const text = id === undefined ? '' : engine.profile.vocabulary.decode([id])
    return {
      token: text,
      logprob: logprob instanceof JsonNumber ? logprob.value : null,
      bytes: [...Buffer.from(text, 'utf8')],
    }
  }
  return {
    content: content.map((item) => {
      const top = item instanceof Map ? item.get('top_logprobs') : undefined
      return { ...entry(item), top_logprobs: Array.isArray(top) ? top.map(entry) : [] }
    }),
  }
}
