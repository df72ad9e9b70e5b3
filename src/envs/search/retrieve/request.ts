import { decode } from '@msgpack/msgpack'
import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'

/**
 * The retrieval APIs of the field. The body says which one it is, but for those whose body is also another's: these have a
 * path of their own, or are what the server is told to take such bodies for.
 * - `search-r1`: `{queries, topk?, return_scores?}` (Search-R1, verl, slime, RL-Factory, ARPO, Tree-GRPO, agent-lightning;
 *   GEM sends the same as MessagePack, `gem/tools/search_tool.py`)
 * - `skyrl`: `{query, topk?, return_scores?}`
 * - `rllm`: `{query, top_k | k}`
 * - `zerosearch`: `{query, top_k}`, rLLM's body, answered with a bare list of `{text}` (`retrieve_from_wiki` of ZeroSearch's
 *   `llm_agent/generation.py`, JohnZhao2023/ZeroSearch at 222f8ea)
 * - `browsecomp-plus`: `{query}`
 * - `google`: `{query}`, answered as slime's web search is (`examples/search-r1/local_search_server.py`); at its own path
 * - `recall`: `{query, top_n?, return_score?}` at `/search`, a list of queries at `/batch_search` (ReCall's server around FlashRAG's
 *   retrievers, `scripts/serving/retriever_serving.py`, threegold116/ReCall-OCT at f228480; ReSearch asks the same)
 */
export const retrieveDialects = [
  'search-r1',
  'skyrl',
  'rllm',
  'zerosearch',
  'browsecomp-plus',
  'google',
  'recall',
] as const

/** One of {@link retrieveDialects}. */
export type RetrieveDialect = (typeof retrieveDialects)[number]

/** A request of any dialect. */
export interface RetrieveRequest {
  readonly dialect: RetrieveDialect
  readonly queries: readonly string[]
  /** Null: the server's default. */
  readonly topk: number | null
  readonly returnScores: boolean
  /** Of `recall`: asked with a list, so answered with one ranking per query. */
  readonly batch?: boolean
  readonly encoding: 'json' | 'msgpack'
}

const count = z.int().min(1).max(1000).nullish()
const flag = z.boolean().nullish()
/** Servers of one family name these as they like. */
const wishes = { topk: count, top_k: count, k: count, top_n: count, return_scores: flag, return_score: flag }
const many = z.looseObject({ queries: z.array(z.string()).max(4096), ...wishes })
const one = z.looseObject({ query: z.string(), ...wishes })
const recallFields = { top_n: count, return_score: flag }
const recallOne = z.looseObject({ query: z.string().regex(/\S/, 'must not be empty'), ...recallFields })
const recallMany = z.looseObject({ query: z.array(z.string()).max(4096), ...recallFields })

/**
 * Reads a body of `/retrieve`. `path` is what stands before it: null, or a dialect's name that overrules the guess;
 * `single` is what a body of one query is taken for where there is none. Throws
 * `BODY_INVALID_JSON`, `BODY_INVALID_SHAPE`.
 */
export function parseRetrieve(
  bytes: Uint8Array,
  path: RetrieveDialect | null,
  single: RetrieveDialect | null = null,
): RetrieveRequest {
  const { encoding, body } = decodeBody(bytes)
  const plural = many.safeParse(body)
  if (plural.success && (path === null || path === 'search-r1')) {
    return { dialect: 'search-r1', queries: plural.data.queries, ...wished(plural.data), encoding }
  }
  const asked = one.safeParse(body)
  if (!asked.success) {
    const { error } = typeof body === 'object' && body !== null && 'queries' in body ? plural : asked
    throw shapeError(`The request fits no dialect: ${z.prettifyError(error ?? asked.error)}`)
  }
  const { query, top_k: topK, k } = asked.data
  const guess = topK !== undefined || k !== undefined ? 'rllm' : 'skyrl'
  return {
    dialect: path ?? single ?? guess,
    queries: [query],
    ...wished(asked.data),
    encoding,
  }
}

function wished(asked: z.infer<typeof many> | z.infer<typeof one>): Pick<RetrieveRequest, 'topk' | 'returnScores'> {
  const { topk, top_k: topK, k, top_n: topN, return_scores: scores, return_score: score } = asked
  return { topk: topk ?? topK ?? k ?? topN ?? null, returnScores: scores ?? score ?? false }
}

/** Reads a body of `/search` or `/batch_search`. Ten passages where it does not say, as ReCall's server. Throws as {@link parseRetrieve}. */
export function parseRecall(bytes: Uint8Array, route: 'search' | 'batch_search'): RetrieveRequest {
  const { encoding, body } = decodeBody(bytes)
  const batch = route === 'batch_search'
  const parsed = (batch ? recallMany : recallOne).safeParse(body)
  if (!parsed.success) {
    throw shapeError(`The request does not fit /${route}: ${z.prettifyError(parsed.error)}`, {
      fix: batch ? 'Send {"query": ["…"], "top_n": 5}.' : 'Send {"query": "…", "top_n": 5}.',
    })
  }
  const { query, top_n: topN, return_score: scores } = parsed.data
  return {
    dialect: 'recall',
    queries: [query].flat(),
    topk: topN ?? 10,
    returnScores: scores ?? false,
    batch,
    encoding,
  }
}

function shapeError(
  message: string,
  o: { readonly fix: string } = { fix: 'Send {"queries": ["…"], "topk": 3} or {"query": "…"}.' },
): PaddockError {
  return new PaddockError('BODY_INVALID_SHAPE', message, o)
}

function decodeBody(bytes: Uint8Array): { readonly encoding: RetrieveRequest['encoding']; readonly body: unknown } {
  const [first = 0] = bytes
  // GEM sends no content type. A MessagePack map begins with 0x80–0x8f, 0xde or 0xdf, which no JSON text does.
  const msgpack = (first >= 0x80 && first <= 0x8f) || first === 0xde || first === 0xdf
  try {
    if (msgpack) return { encoding: 'msgpack', body: decode(bytes) }
    return { encoding: 'json', body: JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) }
  } catch (cause) {
    throw new PaddockError(
      'BODY_INVALID_JSON',
      `The body is not ${msgpack ? 'MessagePack' : 'JSON'}: ${String(cause)}`,
      {
        cause,
      },
    )
  }
}
