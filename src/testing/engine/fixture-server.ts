import { once } from 'node:events'
import { createServer } from 'node:http'

/** A request as a fixture sees it. */
export interface FixtureRequest {
  readonly streamed: boolean
  readonly tools: boolean
  readonly body: Readonly<Record<string, unknown>>
}

/**
 * Replies of one version of a server, transcribed from its sources or documents: shapes, never recordings. `routes` is by
 * `METHOD /path`; a text is sent as events when it begins with `data:`.
 */
export interface EngineFixture {
  readonly engine: string
  readonly version: string | null
  /** Files at commits, documents, issues. */
  readonly sources: readonly string[]
  readonly model: string
  /** Prompt ids of every chat, sampled ids of an answer without tools and with. */
  readonly promptIds: readonly number[]
  readonly sampled: { readonly text: readonly number[]; readonly call: readonly number[] }
  readonly routes: Readonly<Record<string, (request: FixtureRequest) => string | object>>
}

/** Serves a fixture on loopback. A route that the fixture lacks is 404, as the server's own would be. */
export async function serveFixture(
  fixture: EngineFixture,
): Promise<AsyncDisposable & { readonly url: string; readonly asked: readonly FixtureRequest[] }> {
  const asked: FixtureRequest[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const body = (text === '' ? {} : JSON.parse(text)) as FixtureRequest['body']
      const seen = {
        streamed: body['stream'] === true,
        tools: Array.isArray(body['tools']) && body['tools'].length > 0,
        body,
      }
      asked.push(seen)
      const route = fixture.routes[`${request.method} ${request.url}`]
      const reply = route?.(seen)
      const events = typeof reply === 'string' && reply.startsWith('data:')
      response.writeHead(reply === undefined ? 404 : 200, {
        'content-type': events ? 'text/event-stream; charset=utf-8' : 'application/json',
      })
      response.end(typeof reply === 'string' ? reply : JSON.stringify(reply ?? { detail: 'Not Found' }))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? (address?.port ?? 0) : 0}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Payloads as a stream of events with its closing mark. */
export function eventsOf(payloads: readonly object[]): string {
  return [...payloads.map((payload) => JSON.stringify(payload)), '[DONE]'].map((text) => `data: ${text}\n\n`).join('')
}
