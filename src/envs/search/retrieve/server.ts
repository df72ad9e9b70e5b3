import type { IncomingMessage, ServerResponse } from 'node:http'
import { encode } from '@msgpack/msgpack'
import { isPaddockError, PaddockError } from '../../../core/index.ts'
import { bodyOf, served } from '../../serving.ts'
import type { Bm25Parameters } from '../index/index.ts'
import type { Corpus } from '../corpus/index.ts'
import { retrieveReply } from './reply.ts'
import { parseRecall, parseRetrieve, type RetrieveDialect, retrieveDialects } from './request.ts'

/** What a retriever answers with when a request does not say. */
export interface RetrieveDefaults {
  /** Default 3, as the clients of Search-R1 ask for. */
  readonly topk?: number
  readonly parameters?: Bm25Parameters
  /** What `/retrieve` takes a request of one query for. Default: `rllm` with `top_k` or `k`, else `skyrl`. */
  readonly dialect?: RetrieveDialect
}

const maxBodyBytes = 8 * 2 ** 20
const named = retrieveDialects.filter((dialect) => dialect !== 'recall')
const route = new RegExp(`^/(?:(${named.join('|')})/)?retrieve/?$`)
const recallRoute = /^\/(search|batch_search)\/?$/

/**
 * The retrieval handler over a corpus: any dialect at `/retrieve`, a named one at `/<dialect>/retrieve`, ReCall's at `/search`
 * and `/batch_search`.
 */
export function retrieveHandler(
  corpus: Pick<Corpus, 'search'>,
  defaults: RetrieveDefaults = {},
): (request: IncomingMessage, response: ServerResponse) => void {
  const answer = async (request: IncomingMessage): Promise<{ readonly type: string; readonly body: Uint8Array }> => {
    const [path = ''] = (request.url ?? '').split('?')
    const found = route.exec(path)
    const recall = recallRoute.exec(path)
    if ((found === null && recall === null) || request.method !== 'POST') {
      throw new PaddockError('ROUTE_DENIED', `${request.method ?? ''} ${path} is not served here`, {
        fix: `POST to /retrieve, /<dialect>/retrieve (${named.join(', ')}), /search or /batch_search.`,
      })
    }
    const bytes = await bodyOf(request, maxBodyBytes)
    const asked =
      recall === null
        ? parseRetrieve(bytes, dialectOf(found?.[1]), defaults.dialect)
        : parseRecall(bytes, recall[1] === 'search' ? 'search' : 'batch_search')
    const topk = asked.topk ?? defaults.topk ?? 3
    const { parameters } = defaults
    const options = { topk, ...(parameters === undefined ? {} : { parameters }) }
    const rankings = await Promise.all(asked.queries.map((query) => corpus.search(query, options)))
    const reply = retrieveReply(asked, rankings)
    if (asked.encoding === 'msgpack') return { type: 'application/msgpack', body: encode(reply) }
    return { type: 'application/json', body: Buffer.from(JSON.stringify(reply)) }
  }
  return (request, response) => {
    answer(request).then(
      ({ type, body }) => response.writeHead(200, { 'content-type': type }).end(body),
      (error: unknown) => refuse(response, error),
    )
  }
}

/** A running retriever. */
export interface Retriever extends AsyncDisposable {
  /** `http://host:port/retrieve`. */
  readonly url: string
}

/** Serves {@link retrieveHandler}. Port 0 takes a free one. Throws `PORT_IN_USE`. */
export async function serveRetrieve(
  corpus: Pick<Corpus, 'search'>,
  o: RetrieveDefaults & { readonly port?: number; readonly host?: string } = {},
): Promise<Retriever> {
  const { origin, ...running } = await served(retrieveHandler(corpus, o), o)
  return { url: `${origin}/retrieve`, ...running }
}

function dialectOf(name: string | undefined): RetrieveDialect | null {
  return retrieveDialects.find((dialect) => dialect === name) ?? null
}

function refuse(response: ServerResponse, error: unknown): void {
  const fault = isPaddockError(error) ? error : new PaddockError('INTERNAL', String(error), { cause: error })
  // What is left of a refused body is not read.
  response.writeHead(fault.status, { 'content-type': 'application/json', connection: 'close' })
  response.end(JSON.stringify({ error: fault.toJSON() }))
}
