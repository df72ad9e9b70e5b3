import { createServer, type Server } from 'node:http'
import express, { type Express } from 'express'
import { originOf, PaddockError } from '../core/index.ts'
import { Gate, noteActs, consolePath } from '../access/index.ts'
import { type EngineConsole, engineConsole } from './console.ts'
import type { ControlParts } from './contract.ts'
import { answerFailure, noRoute } from './failure.ts'
import type { LiveFeed } from './live.ts'
import { metrics } from './metrics.ts'
import { nodeRoutes } from './nodes/index.ts'
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
}

/** A running control listener. */
export interface ControlServer {
  /** `http://host:port`. */
  readonly origin: string
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

/**
 * Starts the control API on its own port. Throws `PORT_IN_USE` where another process listens.
 */
export async function startControl(parts: ControlParts, options: ControlOptions): Promise<ControlServer> {
  const { live } = options
  const { app, console, close } = controlApp(parts, options)
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 60_000, maxHeaderSize: 16_384 }, app)
  serveUpgrades(server, console)
  await listen(server, options.host, options.port)
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : options.port
  let closing: Promise<void> | null = null
  return {
    origin: originOf(options.host, port),
    port,
    close: () => {
      closing ??= new Promise((resolve) => {
        live.close()
        close()
        server.close(() => resolve())
        server.closeAllConnections()
      })
      return closing
    },
  }
}

function serveUpgrades(server: Server, console: EngineConsole | null): void {
  server.on('upgrade', (request, socket, head) => {
    if (console === null) socket.end('HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
    else console.upgrade(request, socket, head)
  })
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        error.code === 'EADDRINUSE'
          ? new PaddockError('PORT_IN_USE', `${host}:${port} is taken by another process`, { cause: error })
          : error,
      )
    })
    server.listen(port, host, () => resolve())
  })
}
