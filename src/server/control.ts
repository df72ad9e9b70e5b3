import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import express, { type Express } from 'express'
import { originOf, PaddockError } from '../core/index.ts'
import { Gate, noteActs, consolePath } from '../access/index.ts'
import { type EngineConsole, engineConsole } from './console.ts'
import type { ControlParts } from './contract.ts'
import { answerFailure, noRoute } from './failure.ts'
import type { LiveFeed } from './live.ts'
import { metrics } from './metrics.ts'
import { nodeRoutes, nodeVerificationRoutes } from './nodes/index.ts'
import { readiness } from './readiness.ts'
import { rlRoutes } from './rl/index.ts'
import { controlRoutes } from './routes.ts'

export interface ControlOptions {
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
  /** Of the machine: role admin. */
  readonly token: string
  /** Data directory, whose tokens open it too. */
  readonly directory: string
  readonly live: LiveFeed
  /** Base URL of the engine's own console; null: no such route. */
  readonly engineConsole: string | null
  /** Null: plain HTTP. */
  readonly tls: ControlTls | null
}

/** PEM texts of a listener. */
export interface ControlTls {
  readonly cert: string
  readonly key: string
}

/** A running control listener. */
export interface ControlServer {
  /** `http://host:port`, `https:` with TLS. */
  readonly origin: string
  /** What processes of this machine ask: beside a listener with TLS one without, on loopback. */
  readonly localOrigin: string
  readonly port: number
  /** Ends live streams and open connections. Idempotent. */
  close(): Promise<void>
}

const maxBodyBytes = '1mb'

/** The control listener's routes and what they stand on. */
export interface ControlApp {
  readonly app: Express
  readonly console: EngineConsole | null
  readonly close: () => void
}

/** Every route of the control listener behind its gate: who may call which is in `access/route-table.ts`. */
export function controlApp(
  parts: ControlParts,
  {
    live,
    token,
    directory,
    engineConsole: target,
  }: Pick<ControlOptions, 'live' | 'token' | 'directory' | 'engineConsole'>,
): ControlApp {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  const gate = new Gate({ token, directory })
  app.use(gate.handler)
  app.get('/healthz', (_request, response) => {
    response.json({ status: 'ok' })
  })
  app.get('/readyz', readiness(parts))
  const console = target === null ? null : engineConsole(target, (...asked) => gate.admit(...asked))
  // Before the body parser: the console's bodies pass through untouched.
  if (console !== null) app.use(consolePath, console.request)
  const noted = noteActs(parts.reader)
  app.use('/rl/v1', rlRoutes(parts.rl, noted))
  app.use(nodeRoutes(parts.nodes))
  app.use(nodeVerificationRoutes(parts.nodes))
  app.use(express.json({ limit: maxBodyBytes, strict: true }))
  const registry = metrics(parts, () => live.readers)
  app.get('/metrics', async (_request, response) => {
    response.type(registry.contentType).send(await registry.metrics())
  })
  app.get('/events', live.handler)
  app.use(noted, controlRoutes(parts))
  app.use(noRoute)
  app.use(answerFailure)
  return {
    app,
    console,
    close: () => {
      gate.close()
      registry.clear()
      console?.close()
    },
  }
}

/** Heads are short; the body of a request may be a rollout that a node hands in over a slow network, and a node waits ten minutes for its answer. */
const limits = { headersTimeout: 10_000, requestTimeout: 600_000, maxHeaderSize: 16_384 }

/**
 * Starts the control API on its own port. Throws `PORT_IN_USE` where another process listens, and `CONFIG_INVALID` for a certificate or
 * key that is none.
 */
export async function startControl(parts: ControlParts, options: ControlOptions): Promise<ControlServer> {
  const { live, tls } = options
  const { app, console, close } = controlApp(parts, options)
  const server = tls === null ? createServer(limits, app) : secureServer(tls, app)
  const local = tls === null ? null : createServer(limits, app)
  const servers = local === null ? [server] : [server, local]
  for (const one of servers) serveUpgrades(one, console)
  const port = await listen(server, options.host, options.port)
  let closing: Promise<void> | null = null
  const end = async (): Promise<void> => {
    live.close()
    close()
    await Promise.all(servers.map(ended))
  }
  const origin = originOf(options.host, port, tls === null ? 'http' : 'https')
  try {
    const localOrigin = local === null ? origin : originOf('127.0.0.1', await listen(local, '127.0.0.1', 0))
    return { origin, localOrigin, port, close: () => (closing ??= end()) }
  } catch (error) {
    await end()
    throw error
  }
}

function secureServer(tls: ControlTls, app: RequestListener): Server {
  try {
    return createSecureServer({ ...limits, ...tls }, app)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new PaddockError('CONFIG_INVALID', `tls.cert and tls.key do not make a listener: ${why}`, { cause })
  }
}

/** Resolves when a server that may have been listening has ended. */
function ended(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}

function serveUpgrades(server: Server, console: EngineConsole | null): void {
  server.on('upgrade', (request, socket, head) => {
    if (console === null) socket.end('HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
    else console.upgrade(request, socket, head)
  })
}

/** Resolves to the port. */
function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        error.code === 'EADDRINUSE'
          ? new PaddockError('PORT_IN_USE', `${host}:${port} is taken by another process`, { cause: error })
          : error,
      )
    })
    server.listen(port, host, () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : port)
    })
  })
}
