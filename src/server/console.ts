import { Agent, type IncomingMessage, STATUS_CODES } from 'node:http'
import { createRequire } from 'node:module'
import type { Duplex } from 'node:stream'
import type { RequestHandler } from 'express'
import type httpProxy from 'http-proxy'
import { isPaddockError, PaddockError } from '../core/index.ts'
import { consolePath } from '../access/index.ts'

export interface EngineConsole {
  readonly request: RequestHandler
  /** For the server's `upgrade` event. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  close(): void
}

/** Lets a connection in, or throws a `PaddockError` with why not. */
export type Admit = (request: IncomingMessage, path: string, socket: Duplex) => void

/**
 * Passes an engine's console through. http-proxy 1.18.1 needs two hooks to be safe: without them a client that leaves
 * does not cancel the upstream request, and an upstream that dies leaves the client hanging.
 */
export function engineConsole(target: string, admit: Admit): EngineConsole {
  const agent = new Agent({ keepAlive: true })
  // Loaded by who has a console.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the package exports
  const packaged = createRequire(import.meta.url)('http-proxy') as typeof httpProxy
  const proxy = packaged.createProxyServer({ target, agent, changeOrigin: true, ws: true, xfwd: false })
  proxy.on('proxyReq', (upstream, _request, response) => {
    upstream.removeHeader('authorization')
    response.once('close', () => {
      if (!response.writableFinished) upstream.destroy()
    })
  })
  proxy.on('proxyReqWs', (upstream) => upstream.removeHeader('authorization'))
  proxy.on('proxyRes', (upstream, _request, response) => {
    upstream.once('aborted', () => response.destroy())
    upstream.once('error', () => response.destroy())
  })
  return {
    request: (request, response, next) => {
      proxy.web(request, response, {}, (cause) => {
        if (response.headersSent) response.destroy()
        else next(unreachable(target, cause))
      })
    },
    upgrade: (request, socket, head) => {
      if (request.url === undefined || !isConsoleUrl(request.url)) return refuse(socket, '404 Not Found')
      try {
        admit(request, new URL(request.url, 'http://control').pathname, socket)
      } catch (error) {
        if (!isPaddockError(error)) throw error
        return refuse(socket, `${error.status} ${STATUS_CODES[error.status] ?? ''}`)
      }
      request.url = request.url.slice(consolePath.length) || '/'
      proxy.ws(request, socket, head, {}, () => socket.destroy())
    },
    close: () => {
      proxy.close()
      agent.destroy()
    },
  }
}

function isConsoleUrl(url: string): boolean {
  return url === consolePath || url.startsWith(`${consolePath}/`) || url.startsWith(`${consolePath}?`)
}

function refuse(socket: Duplex, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
}

function unreachable(target: string, cause: Error): PaddockError {
  return new PaddockError('ENGINE_UNREACHABLE', `the console at ${target} does not answer: ${cause.message}`, { cause })
}
