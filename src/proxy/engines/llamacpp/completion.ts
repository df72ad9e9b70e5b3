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
  const told = Array.isArray(answer['completion_probabilities']) ? answer['completion_probabilities'] : []
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
 * One entry per id. The tokens of a matched stop string come without theirs (run against build 11549): they have no
 * logprob, and the first of them the rest of the text.
 */
function entriesOf(told: readonly unknown[], ids: readonly number[], text: string): LooseObject[] {
  const entries = told.map(entryOf)
  for (const id of ids.slice(entries.length)) {
    const rest = text.slice(entries.map(({ token }) => String(token)).join('').length)
    entries.push({ ...entryOf({ token: rest }), token_id: id })
  }
  return entries
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
