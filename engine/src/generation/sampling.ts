import { validationError } from '../errors.ts'
import { JsonNumber } from '../json/lossless.ts'
import { readCount, readFlag, readNumber } from '../json/read.ts'
import type { JsonObject } from '../json/lossless.ts'
import type { NextToken } from '../policy/trie.ts'

/** What shapes a generation. Defaults are those of vLLM's chat route (`_DEFAULT_SAMPLING_PARAMS`). */
export interface SamplingParams {
  readonly n: number
  readonly temperature: number
  readonly topP: number
  readonly topK: number
  readonly minP: number
  readonly seed: number | undefined
  readonly stop: readonly string[]
  readonly stopTokenIds: readonly number[]
  readonly includeStop: boolean
  readonly skipSpecial: boolean
  /** Alternatives to report per token; undefined for no logprobs at all. */
  readonly topLogprobs: number | undefined
}

/** Which logprob an engine reports: of the model, after temperature (SGLang), or after everything (vLLM flag). */
export type LogprobsMode = 'raw_logprobs' | 'temperature_logprobs' | 'processed_logprobs'

/** One drawn token. Logprobs are rounded to float32, as engines compute them. */
export interface Draw {
  readonly id: number
  readonly logprob: number
  readonly top: readonly { readonly id: number; readonly logprob: number }[]
}

/** As OpenAI's API; each choice is a generation of its own. */
const MOST_CHOICES = 128

/** Reads the fields that all routes share. Throws a 400 for values that vLLM's SamplingParams refuses. */
export function readSampling(body: JsonObject, topLogprobs: number | undefined): SamplingParams {
  const n = readCount(body, 'n') ?? 1
  const temperature = readNumber(body, 'temperature') ?? 1
  const topP = readNumber(body, 'top_p') ?? 1
  if (n < 1) throw validationError(`n must be at least 1, got ${n}.`, 'n', n)
  if (n > MOST_CHOICES) throw validationError(`n must be at most ${MOST_CHOICES}, got ${n}.`, 'n', n)
  if (temperature < 0)
    throw validationError(`temperature must be non-negative, got ${temperature}.`, 'temperature', temperature)
  if (topP <= 0 || topP > 1) throw validationError(`top_p must be in (0, 1], got ${topP}.`, 'top_p', topP)
  const stop = body.get('stop') ?? []
  const stopIds = body.get('stop_token_ids') ?? []
  return {
    n,
    temperature,
    topP,
    topK: readCount(body, 'top_k') ?? 0,
    minP: readNumber(body, 'min_p') ?? 0,
    seed: readCount(body, 'seed'),
    stop: (Array.isArray(stop) ? stop : [stop]).filter((text) => typeof text === 'string' && text !== '').map(String),
    stopTokenIds: Array.isArray(stopIds) ? stopIds.flatMap((id) => (id instanceof JsonNumber ? [id.value] : [])) : [],
    includeStop: readFlag(body, 'include_stop_str_in_output') ?? false,
    skipSpecial: readFlag(body, 'skip_special_tokens') ?? true,
    topLogprobs,
  }
}

/** Draws from a next-token distribution. Temperature 0 takes the most likely, like a greedy engine. */
export function draw(
  next: readonly NextToken[],
  params: SamplingParams,
  mode: LogprobsMode,
  random: () => number,
): Draw {
  const forced = next.length === 1 ? next[0] : undefined
  if (forced !== undefined) return { id: forced.id, logprob: 0, top: [{ id: forced.id, logprob: 0 }] }
  const heated = params.temperature === 0 ? next : heat(next, params.temperature)
  const kept = params.temperature === 0 ? next.slice(0, 1) : truncate(heated, params)
  const chosen = pick(kept, random())
  const reported =
    mode === 'raw_logprobs' ? next : mode === 'temperature_logprobs' ? heated : params.temperature === 0 ? next : kept
  const of = (id: number): number => Math.fround(Math.log(reported.find((token) => token.id === id)?.probability ?? 0))
  const top = reported.slice(0, params.topLogprobs ?? 0).map((token) => ({ id: token.id, logprob: of(token.id) }))
  return { id: chosen.id, logprob: of(chosen.id), top }
}

/** Softmax of log p / T over the tokens that can come next; beside the likeliest, so that the powers of none of them vanish. */
function heat(next: readonly NextToken[], temperature: number): NextToken[] {
  const likeliest = Math.max(...next.map((token) => token.probability))
  const powers = next.map((token) => (token.probability / likeliest) ** (1 / temperature))
  const total = powers.reduce((sum, power) => sum + power, 0)
  return next.map((token, at) => ({ id: token.id, probability: (powers[at] ?? 0) / total }))
}

/** Top-k, then top-p (the fewest tokens that reach it), then min-p relative to the best; renormalised. */
function truncate(next: readonly NextToken[], params: SamplingParams): NextToken[] {
  let kept = params.topK > 0 ? next.slice(0, params.topK) : [...next]
  if (params.topP < 1) {
    let reached = 0
    const cut = kept.findIndex((token) => (reached += token.probability) >= params.topP)
    kept = cut === -1 ? kept : kept.slice(0, cut + 1)
  }
  const floor = (kept[0]?.probability ?? 0) * params.minP
  kept = kept.filter((token) => token.probability >= floor)
  const total = kept.reduce((sum, token) => sum + token.probability, 0)
  return kept.map((token) => ({ id: token.id, probability: token.probability / total }))
}

function pick(kept: readonly NextToken[], point: number): NextToken {
  let passed = 0
  for (const token of kept) {
    passed += token.probability
    if (point < passed) return token
  }
  const last = kept.at(-1)
  if (last === undefined) throw new Error('nothing to draw from')
  return last
}
