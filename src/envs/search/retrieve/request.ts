import { decode } from '@msgpack/msgpack'
import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'

/**
 * The `/retrieve` APIs of the field. The body says which one it is, but for BrowseComp-Plus, whose `{query}` alone is
 * also SkyRL's: that one has a path of its own.
 * - `search-r1`: `{queries, topk?, return_scores?}` (Search-R1, verl, slime, RL-Factory, ARPO, Tree-GRPO, agent-lightning;
 *   GEM sends the same as MessagePack, `gem/tools/search_tool.py`)
 * - `skyrl`: `{query, topk?, return_scores?}`
 * - `rllm`: `{query, top_k | k}`
 * - `browsecomp-plus`: `{query}`
 * - `google`: `{query}`, answered as slime's web search is (`examples/search-r1/local_search_server.py`); at its own path
 */
export type RetrieveDialect = 'search-r1' | 'skyrl' | 'rllm' | 'browsecomp-plus' | 'google'

/** A request of any dialect. */
export interface RetrieveRequest {
  readonly dialect: RetrieveDialect
  readonly queries: readonly string[]
  /** Null: the server's default. */
  readonly topk: number | null
  readonly returnScores: boolean
  readonly encoding: 'json' | 'msgpack'
}

const count = z.int().min(1).max(1000).nullish()
const flag = z.boolean().nullish()
const many = z.looseObject({ queries: z.array(z.string()).max(4096), topk: count, return_scores: flag })
const one = z.looseObject({ query: z.string(), topk: count, top_k: count, k: count, return_scores: flag })

/**
 * Reads a body. `path` is what stands before `/retrieve`: empty, or a dialect's name that overrules the guess. Throws
 * `BODY_INVALID_JSON`, `BODY_INVALID_SHAPE`.
 */
export function parseRetrieve(bytes: Uint8Array, path: RetrieveDialect | null): RetrieveRequest {
  const { encoding, body } = decodeBody(bytes)
  const plural = many.safeParse(body)
  if (plural.success && (path === null || path === 'search-r1')) {
    const { queries, topk, return_scores: scores } = plural.data
    return { dialect: 'search-r1', queries, topk: topk ?? null, returnScores: scores ?? false, encoding }
  }
  const single = one.safeParse(body)
  if (!single.success) {
    const { error } = typeof body === 'object' && body !== null && 'queries' in body ? plural : single
    throw new PaddockError(
      'BODY_INVALID_SHAPE',
      `The request fits no dialect: ${z.prettifyError(error ?? single.error)}`,
      {
        fix: 'Send {"queries": ["…"], "topk": 3} or {"query": "…"}.',
      },
    )
  }
  const { query, topk, top_k: topK, k, return_scores: scores } = single.data
  const guess = topK !== undefined || k !== undefined ? 'rllm' : 'skyrl'
  return {
    dialect: path ?? guess,
    queries: [query],
    topk: topk ?? topK ?? k ?? null,
    returnScores: scores ?? false,
    encoding,
  }
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
