import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { catalogue, type EventBody } from '../core/index.ts'
import type { SessionHandler } from '../proxy/index.ts'
import type { SlotHandlers } from '../sandbox/index.ts'

/**
 * What a box's socket serves: `/mcp` is the environment's tools, everything else its session's model routes, and a
 * CONNECT is refused, because boxes have no egress. Every attempt to get out is an event.
 */
export function boxDoor(parts: {
  readonly session: SessionHandler
  /** The environment's MCP server; null: it has none, and the route is 404. */
  readonly mcp: SessionHandler | null
  readonly emit: (event: EventBody) => void
}): SlotHandlers {
  return {
    request: (request, response) => {
      if (!isMcp(request)) parts.session.request(request, response)
      else if (parts.mcp === null) refuse(request, response)
      else parts.mcp.request(request, response)
    },
    connect: (request, socket) => {
      parts.emit({ kind: 'egress', ...authority(request.url ?? ''), allowed: false, rule: 'none' })
      refuseConnect(socket)
    },
  }
}

function isMcp(request: IncomingMessage): boolean {
  const path = (request.url ?? '').split('?', 1)[0] ?? ''
  return path === '/mcp' || path.startsWith('/mcp/')
}

function refuse(request: IncomingMessage, response: ServerResponse): void {
  const { status, fix } = catalogue.ROUTE_DENIED
  request.resume()
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(
    JSON.stringify({ error: { code: 'ROUTE_DENIED', message: `This environment has no MCP server. ${fix}` } }),
  )
}

function refuseConnect(socket: Duplex): void {
  socket.on('error', () => undefined)
  socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
}

// RFC 9110 §9.3.6: the target of CONNECT is host:port; an IPv6 host stands in brackets.
function authority(target: string): { host: string; port: number } {
  const colon = target.lastIndexOf(':')
  const port = Number(target.slice(colon + 1))
  if (colon < 0 || !Number.isInteger(port)) return { host: target.slice(0, 255), port: 0 }
  return { host: target.slice(0, colon).slice(0, 255), port }
}
