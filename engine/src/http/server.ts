import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { EngineError } from '../errors.ts'
import { Exchange } from './exchange.ts'
import type { Engine } from '../engine.ts'
import type { EngineOptions, Wire } from '../options.ts'

/** Answers one request. Throws EngineError for a refusal in vLLM's shape. */
export type Route = (exchange: Exchange, engine: Engine) => Promise<void> | void

/** `"POST /v1/chat/completions"` -> route. */
export type RouteTable = Readonly<Record<string, Route>>

/** A listening engine. */
export interface RunningEngine {
  readonly url: string
  readonly control: string
  readonly engine: Engine
  close(): Promise<void>
}

/** Serves `routes` over HTTP. Resolves once the port is open. */
export async function listen(engine: Engine, routes: RouteTable): Promise<RunningEngine> {
  const { options } = engine
  const server = createServer({ keepAliveTimeout: 65_000, requestTimeout: 0 }, (request, response) => {
    const exchange = new Exchange(request, response)
    void answer(exchange, engine, routes)
  })
  server.maxRequestsPerSocket = 0
  const opened = Promise.withResolvers<void>()
  server.once('error', opened.reject)
  server.listen({ host: options.host, port: options.port, backlog: 4096 }, opened.resolve)
  await opened.promise
  const url = urlOf(options, server.address())
  return {
    url,
    control: `${url}/control`,
    engine,
    close: async () => {
      engine.abortFlights()
      engine.gate.resume()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      engine.journal.close()
    },
  }
}

function urlOf(options: EngineOptions, address: AddressInfo | string | null): string {
  const port = typeof address === 'object' && address !== null ? address.port : options.port
  return `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`
}

async function answer(exchange: Exchange, engine: Engine, routes: RouteTable): Promise<void> {
  try {
    authorise(exchange, engine.options.apiKey)
    const { pathname } = exchange.url
    const route = routes[`${exchange.request.method} ${pathname}`]
    if (route === undefined) {
      const known = Object.keys(routes).some((key) => key.endsWith(` ${pathname}`))
      throw known
        ? new EngineError('Method Not Allowed', { status: 405, type: 'Method Not Allowed' })
        : new EngineError('Not Found', { status: 404, type: 'Not Found' })
    }
    if (isOrder(exchange.request.method, pathname)) engine.noteOrder(exchange.url)
    await route(exchange, engine)
  } catch (error) {
    refuse(exchange, error, engine.options.wire)
  }
}

function refuse(exchange: Exchange, error: unknown, wire: Wire): void {
  if (exchange.response.headersSent || exchange.response.destroyed) {
    void exchange.die()
    return
  }
  const known =
    error instanceof EngineError
      ? error
      : new EngineError(error instanceof Error ? error.message : String(error), {
          status: 500,
          type: 'InternalServerError',
        })
  exchange.error(known, wire === 'sglang' ? 'flat' : 'envelope')
}

/** vLLM guards `/v1` and `/inference` only (docs.vllm.ai v0.28.0, "API key authentication limitations"). */
function authorise(exchange: Exchange, key: string | undefined): void {
  if (key === undefined || !/^\/(v1|v2|inference)(\/|$)/.test(exchange.url.pathname)) return
  if (exchange.header('authorization') !== `Bearer ${key}`) {
    throw new EngineError('Unauthorized', { status: 401, type: 'Unauthorized' })
  }
}

/** Routes that change what is generated and how, of any wire. */
function isOrder(method: string | undefined, path: string): boolean {
  return (
    method === 'POST' && /^\/(?:pause|resume|continue|abort|update_|start_weight|finish_weight|flush|reset_)/.test(path)
  )
}
