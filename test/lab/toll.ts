/**
 * Sits between proxy and engine and decides how a call ends: as the engine answers, or with what a test says. A second try
 * of the proxy's own at the same call ends as the first did.
 */
import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'

/** How a call ends. `pass`: as the engine answers it, `behind` something. */
export type CallEnd =
  | { readonly kind: 'pass'; readonly behind?: Promise<unknown> | (() => Promise<unknown>) }
  /** A whole answer in the engine's place. */
  | { readonly kind: 'answer'; readonly status: number; readonly body: string; readonly type?: string }
  /** The connection is reset before any byte. */
  | { readonly kind: 'reset' }
  /** So many bytes of the engine's answer, then a reset. */
  | { readonly kind: 'cut'; readonly after: number }
  /** Nothing, for as long as the client waits. */
  | { readonly kind: 'silence' }
  /** The head of a stream and what the engine said first; the rest follows `behind` something, by default never. */
  | { readonly kind: 'stall'; readonly behind?: () => Promise<unknown> }

export interface Toll extends AsyncDisposable {
  readonly url: string
  /** How the next calls end, in order; those behind them pass. */
  next(...ends: readonly CallEnd[]): void
  /** From now on each call ends as this says of its session. */
  by(rule: (sessionId: string) => CallEnd): void
  /** Resolves when so many calls have come since {@link Toll.next}. */
  came(count: number): Promise<void>
}

const generations = new Set(['/v1/chat/completions', '/inference/v1/generate'])

export async function startToll(engineUrl: string): Promise<Toll> {
  const engine = new URL(engineUrl)
  let coming: CallEnd[] = []
  let calls = new Map<string, CallEnd>()
  let rule: ((sessionId: string) => CallEnd) | null = null
  const waiting = new Set<() => void>()

  const endOf = (id: string, session: string): CallEnd => {
    const known = calls.get(id)
    if (known !== undefined) return known
    const end = rule?.(session) ?? coming.shift() ?? { kind: 'pass' }
    calls.set(id, end)
    for (const look of waiting) look()
    return end
  }

  const pass = (
    asked: IncomingMessage,
    { body, response }: { readonly body: Buffer; readonly response: ServerResponse },
    answered: (engines: IncomingMessage) => void,
  ) => {
    const { method, url: path, headers } = asked
    const out = request({ host: engine.hostname, port: engine.port, method, path, headers }, answered)
    out.on('error', () => asked.socket.destroy())
    response.once('close', () => out.destroy())
    out.end(body)
  }

  const serve = async (asked: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of asked) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const id = String(asked.headers['x-request-id'] ?? '')
    const isCall = asked.method === 'POST' && generations.has(asked.url ?? '')
    const end: CallEnd = isCall
      ? endOf(id.split('.')[0] ?? '', String(asked.headers['x-session-id']))
      : { kind: 'pass' }
    switch (end.kind) {
      case 'reset':
        asked.socket.resetAndDestroy()
        return
      case 'silence':
        return
      case 'answer':
        response.writeHead(end.status, { 'content-type': end.type ?? 'application/json' }).end(end.body)
        return
      default:
    }
    if (end.kind === 'pass') await (typeof end.behind === 'function' ? end.behind() : end.behind)
    pass(asked, { body, response }, (engines) => {
      response.writeHead(engines.statusCode ?? 502, engines.headers)
      if (end.kind === 'pass') {
        engines.pipe(response)
        return
      }
      if (end.kind === 'stall') {
        engines.once('data', (bytes: Buffer) => {
          engines.pause()
          response.write(bytes)
          void end.behind?.().then(() => engines.pipe(response))
        })
        return
      }
      let left = end.after
      engines.on('data', (bytes: Buffer) => {
        if (left <= 0) return
        response.write(bytes.subarray(0, Math.min(left, bytes.length)), () => {
          if (left <= 0) asked.socket.resetAndDestroy()
        })
        left -= bytes.length
      })
    })
  }

  const server = createServer((asked, response) => {
    serve(asked, response).catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    by: (of) => {
      rule = of
    },
    next: (...ends) => {
      coming = [...ends]
      calls = new Map()
    },
    came: (count) =>
      new Promise((resolve) => {
        const look = () => {
          if (calls.size < count) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
