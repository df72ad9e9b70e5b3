import { parseEngineJson } from '../../dialects/chat/answer.ts'
import { tokenIdOf } from '../../dialects/chat/wire-values.ts'
import type { LooseObject } from '../../session/sampling.ts'
import type { PromptIds } from '../prompt-ids.ts'
import type { ChatText, Generated } from '../token-engine.ts'

/** Chat members by their names at `/completion`; its chat route takes these names too. */
const samplingNames: Readonly<Record<string, string>> = {
  temperature: 'temperature',
  top_p: 'top_p',
  top_k: 'top_k',
  min_p: 'min_p',
  frequency_penalty: 'frequency_penalty',
  presence_penalty: 'presence_penalty',
  repetition_penalty: 'repeat_penalty',
  repeat_penalty: 'repeat_penalty',
  max_completion_tokens: 'n_predict',
  max_tokens: 'n_predict',
  stop: 'stop',
  ignore_eos: 'ignore_eos',
  logit_bias: 'logit_bias',
  seed: 'seed',
}

/** What no model says: it stands for probability 0. */
const lowest = -1e38

/** `POST /completion` for ids. Values keep their bytes. */
export function completionBody(chat: ChatText, ids: PromptIds, spent: number): Buffer {
  const params = new Map<string, string>()
  for (const [name, theirs] of Object.entries(samplingNames)) {
    const value = chat.text(name)
    if (value !== null && !params.has(theirs)) params.set(theirs, value)
  }
  const most = params.get('n_predict')
  if (most !== undefined && spent > 0) params.set('n_predict', String(Number(most) - spent))
  const sampling = [...params].map(([name, value]) => `,${JSON.stringify(name)}:${value}`).join('')
  const top = Math.max(1, Number(chat.text('top_logprobs') ?? '0'))
  return Buffer.from(`{"prompt":${ids.text},"return_tokens":true,"n_probs":${top},"stream":false${sampling}}`)
}

/** A whole answer of `/completion`. Null where the payload is none. */
export function readCompletion(payload: Buffer): Generated | null {
  const answer = parseEngineJson(payload)
  const tokens = answer?.['tokens']
  if (answer === null || !Array.isArray(tokens)) return null
  const ids = tokens.map(tokenIdOf)
  const told = Array.isArray(answer['completion_probabilities']) ? answer['completion_probabilities'].map(entryOf) : []
  const text = typeof answer['content'] === 'string' ? answer['content'] : ''
  const stopReason = answer['stop_type'] === 'word' ? String(answer['stopping_word']) : null
  const entries = entriesOf(told, ids, text + (stopReason ?? ''))
  const prompt = answer['tokens_evaluated']
  const usage =
    typeof prompt === 'number'
      ? { prompt_tokens: prompt, completion_tokens: ids.length, total_tokens: prompt + ids.length }
      : null
  return {
    parts: [
      {
        index: 0,
        ids,
        logprobs: entries.map(({ logprob }) => (typeof logprob === 'number' && logprob > lowest ? logprob : null)),
        entries,
        finishReason: answer['stop_type'] === 'limit' ? 'length' : 'stop',
        stopReason,
        text,
        routedExperts: null,
        weightVersions: [],
      },
    ],
    promptIds: null,
    usage,
    created: null,
    model: typeof answer['model'] === 'string' ? answer['model'] : null,
    error: null,
  }
}

/**
 * One entry per id. The server leaves out those of tokens that end within a character and those of a matched stop string
 * (run against build 11549), wherever they stand; what it gives has the ids in their order. Where that can be read in two
 * ways nobody knows whose logprob it is: an id counts as given only where the first and the last way agree.
 */
function entriesOf(told: readonly LooseObject[], ids: readonly number[], text: string): LooseObject[] {
  const given = told.map(({ token_id: id }) => id)
  const first = placesOf(given, ids)
  const last = placesOf(given.toReversed(), ids.toReversed())
    .map((at) => ids.length - 1 - at)
    .toReversed()
  const entries: (LooseObject | undefined)[] = ids.map(() => undefined)
  for (const [at, place] of first.entries()) if (last[at] === place) entries[place] = told[at]
  let rest = text
  return ids.map((id, at) => {
    const entry = entries[at]
    const next = entries.slice(at + 1).find((one) => one !== undefined)
    const token = entry === undefined ? textBefore(rest, next) : String(entry['token'])
    rest = rest.startsWith(token) ? rest.slice(token.length) : ''
    return entry ?? { ...entryOf({ token }), token_id: id }
  })
}

/** Where each of `given` stands in `ids`, as early as can be; empty where they are not all there, in their order. */
function placesOf(given: readonly unknown[], ids: readonly number[]): number[] {
  const places: number[] = []
  for (const [at, id] of ids.entries()) if (places.length < given.length && given[places.length] === id) places.push(at)
  return places.length === given.length ? places : []
}

/** The text up to the next token that is known, all of it where none is. */
function textBefore(rest: string, next: LooseObject | undefined): string {
  const at = next === undefined || next['token'] === '' ? -1 : rest.indexOf(String(next['token']))
  return at === -1 ? rest : rest.slice(0, at)
}

function entryOf(value: unknown): LooseObject {
  const told: LooseObject = typeof value === 'object' && value !== null ? { ...value } : {}
  const token = typeof told['token'] === 'string' ? told['token'] : ''
  const alternatives = Array.isArray(told['top_logprobs']) ? told['top_logprobs'].map(entryOf) : []
  return {
    token,
    token_id: told['id'] ?? null,
    logprob: told['logprob'] ?? null,
    bytes: Array.isArray(told['bytes']) ? told['bytes'] : [...Buffer.from(token)],
    ...(alternatives.length === 0 ? {} : { top_logprobs: alternatives }),
  }
}
