import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { encode } from '@msgpack/msgpack'
import { isPaddockError, PaddockError } from '../../../core/index.ts'
import type { Bm25Parameters } from '../index/index.ts'
import type { Corpus } from '../corpus/index.ts'
import { retrieveReply } from './reply.ts'
import { parseRetrieve, type RetrieveDialect } from './request.ts'

/** What a retriever answers with when a request does not say. */
export interface RetrieveDefaults {
  /** Default 3, as the clients of Search-R1 ask for. */
  readonly topk?: number
  readonly parameters?: Bm25Parameters
}

const maxBodyBytes = 8 * 2 ** 20
const route = /^\/(?:(search-r1|skyrl|rllm|browsecomp-plus)\/)?retrieve\/?$/

/** The `/retrieve` handler over a corpus: any dialect at `/retrieve`, a named one at `/<dialect>/retrieve`. */
export function retrieveHandler(
  corpus: Pick<Corpus, 'search'>,
  defaults: RetrieveDefaults = {},
): (request: IncomingMessage, response: ServerResponse) => void {
  const answer = async (request: IncomingMessage): Promise<{ readonly type: string; readonly body: Uint8Array }> => {
    const [path = ''] = (request.url ?? '').split('?')
    const found = route.exec(path)
    if (found === null || request.method !== 'POST') {
      throw new PaddockError('ROUTE_DENIED', `${request.method ?? ''} ${path} is not served here`, {
        fix: 'POST to /retrieve, or to /<dialect>/retrieve: search-r1, skyrl, rllm, browsecomp-plus.',
      })
    }
    const asked = parseRetrieve(await readBody(request), dialectOf(found[1]))
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
  const { port = 0, host = '127.0.0.1' } = o
  const server = createServer(retrieveHandler(corpus, o))
  const listening = Promise.withResolvers<void>()
  server.once('error', (cause: Error) => {
    const taken = 'code' in cause && cause.code === 'EADDRINUSE'
    listening.reject(taken ? new PaddockError('PORT_IN_USE', `Port ${port} on ${host} is taken`, { cause }) : cause)
  })
  server.listen(port, host, listening.resolve)
  await listening.promise
  const address = server.address()
  const bound = typeof address === 'object' && address !== null ? address.port : port
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}/retrieve`,
    [Symbol.asyncDispose]: async () => {
      const closed = Promise.withResolvers<void>()
      server.close(() => closed.resolve())
      server.closeAllConnections()
      await closed.promise
    },
  }
}

function dialectOf(name: string | undefined): RetrieveDialect | null {
  return name === 'search-r1' || name === 'skyrl' || name === 'rllm' || name === 'browsecomp-plus' ? name : null
}

async function readBody(request: IncomingMessage): Promise<Uint8Array> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    const bytes = Buffer.from(chunk)
    size += bytes.length
    if (size > maxBodyBytes) throw new PaddockError('BODY_TOO_LARGE', `The body is larger than ${maxBodyBytes} bytes`)
    chunks.push(bytes)
  }
  return Buffer.concat(chunks)
}

function refuse(response: ServerResponse, error: unknown): void {
  const fault = isPaddockError(error) ? error : new PaddockError('INTERNAL', String(error), { cause: error })
  // What is left of a refused body is not read.
  response.writeHead(fault.status, { 'content-type': 'application/json', connection: 'close' })
  response.end(JSON.stringify({ error: fault.toJSON() }))
}
